// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-speak: a client without a block layer, which says to a server what it is told to, sense or
 * not.
 *
 *	modprobe ibnbd-speak to=ip:10.0.0.2 disk=ram0		opens a session "speak", and the
 *								disk in it
 *	echo "dir=w rw=0x701 bytes=4096 len=4096" > say		sends one message; the write fails
 *								with what the server answers
 *	cat data						how many of the bytes that came, or
 *								were sent, are not 0
 *
 * A message is IO, of the disk, for its first sector, of 32 bytes, unless it says otherwise: type=
 * dev= sector= hdr=. len= is the length of the data beside it, fill= the byte that it consists of;
 * a read is given that many bytes. tests/cases/server/any-message says what.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <ibtrs/clt.h>
#include "ibnbd/proto/msg.h"

#define SPEAK_NAME	"speak"
#define SPEAK_LEN	SZ_64K
#define SPEAK_MS	20000

static char *to = "";
module_param(to, charp, 0444);
static char *disk = "";
module_param(disk, charp, 0444);

static DEFINE_MUTEX(speak_lock);	/* one word at a time, and the data that belongs to it */
static struct ibtrs_clt *clt;
static u32 device_id;
static u8 *buf;
static u32 buf_len;
/* a message was never answered: its memory is the transport's until the session is closed */
static bool lost;
static struct ibtrs_clt_io io;
static struct scatterlist sg;
static int answer;
static DECLARE_COMPLETION(answered);

static void speak_done(struct ibtrs_clt_io *unused, int err)
{
	answer = err;
	complete(&answered);
}

static void speak_link(void *priv, enum ibtrs_clt_link_ev ev)
{
}

static const struct ibtrs_clt_ops speak_ops = { .link = speak_link };

struct speak_words {
	unsigned int type, dev, rw, bytes, len, hdr, fill;
	u64 sector;
	bool write;
};

static int speak_word(char *word, struct speak_words *w)
{
	static const char * const names[] = { "type", "dev", "rw", "bytes", "len", "hdr", "fill" };
	unsigned int *const values[] = { &w->type, &w->dev, &w->rw, &w->bytes, &w->len,
					 &w->hdr, &w->fill };
	char *value = strchr(word, '=');
	int i;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(word, "dir")) {
		w->write = *value == 'w';
		return 0;
	}
	if (!strcmp(word, "sector"))
		return kstrtou64(value, 0, &w->sector);
	i = match_string(names, ARRAY_SIZE(names), word);
	return i < 0 ? i : kstrtouint(value, 0, values[i]);
}

static int speak_send(const struct speak_words *w)
{
	struct ibnbd_wire_io *msg = ibtrs_clt_hdr(clt, 0);
	int err;

	if (lost || w->len > SPEAK_LEN || w->hdr > sizeof(*msg))
		return -E2BIG;
	memset(msg, 0, sizeof(*msg));
	msg->hdr.type = cpu_to_le16(w->type);
	msg->device_id = cpu_to_le32(w->dev);
	msg->sector = cpu_to_le64(w->sector);
	msg->rw = cpu_to_le32(w->rw);
	msg->bytes = cpu_to_le32(w->bytes);
	memset(buf, w->fill, SPEAK_LEN);
	buf_len = w->len;
	sg_init_one(&sg, buf, w->len ?: 1);
	io = (struct ibtrs_clt_io) {
		.dir		= w->write ? IBTRS_WRITE : IBTRS_READ,
		.usr_len	= w->hdr,
		.len		= w->len,
		.nents		= !!w->len,
		.sgl		= &sg,
		.done		= speak_done,
	};
	reinit_completion(&answered);
	err = ibtrs_clt_submit(clt, &io);	/* the answer may be there before this returns */
	if (err)
		return err;
	lost = !wait_for_completion_timeout(&answered, msecs_to_jiffies(SPEAK_MS));
	return lost ? -ETIME : answer;
}

static int say_set(const char *val, const struct kernel_param *kp)
{
	struct speak_words w = { .type = IBNBD_MSG_IO, .dev = device_id,
				 .hdr = sizeof(struct ibnbd_wire_io) };
	char *text, *rest, *word;
	int err = 0;

	if (!clt)
		return -ENOTCONN;
	text = kstrdup(val, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	rest = strim(text);
	while (!err && (word = strsep(&rest, " ")))
		err = speak_word(word, &w);
	mutex_lock(&speak_lock);
	err = err ?: speak_send(&w);
	mutex_unlock(&speak_lock);
	kfree(text);
	return err;
}

static const struct kernel_param_ops say_ops = { .set = say_set };
module_param_cb(say, &say_ops, NULL, 0200);

static int data_get(char *text, const struct kernel_param *kp)
{
	unsigned int i, n = 0;

	mutex_lock(&speak_lock);
	for (i = 0; buf && i < buf_len; i++)
		n += !!buf[i];
	mutex_unlock(&speak_lock);
	return sysfs_emit(text, "%u\n", n);
}

static const struct kernel_param_ops data_ops = { .get = data_get };
module_param_cb(data, &data_ops, NULL, 0444);

static int speak_open(void)
{
	struct ibnbd_open m = { .access = IBNBD_ACCESS_RW, .name = disk };
	struct ibnbd_wire_sess_info info, told;
	struct ibnbd_sess_info offer = { .version = IBNBD_PROTO_MAJOR };
	struct ibnbd_wire_open_rsp_id rsp;
	struct ibnbd_wire_open req;
	struct ibnbd_open_rsp opened;
	const char *why = "no answer";
	int err;

	ibnbd_msg_sess_info_encode(&info, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(clt, IBTRS_READ, &info, sizeof(info), &told, sizeof(told), SPEAK_MS);
	err = err ?: ibnbd_msg_open_encode(&req, &m);
	err = err ?: ibtrs_clt_call(clt, IBTRS_READ, &req, sizeof(req), &rsp,
				    ibnbd_msg_open_rsp_len(0), SPEAK_MS);
	err = err ?: ibnbd_msg_open_rsp_decode(&rsp, ibnbd_msg_open_rsp_len(0), 0, PAGE_SIZE,
					       &opened, &why);
	if (err)
		pr_err("%s: %d: %s\n", disk, err, why);
	else
		device_id = opened.device_id;
	return err;
}

static int __init speak_init(void)
{
	const struct ibtrs_clt_opts opts = { .max_reconnects = -1 };
	struct ibtrs_addr_pair path;
	const char *why;
	int err;

	err = ibtrs_addr_pair_parse(to, strlen(to), &path, &why);
	if (err)
		return err;
	buf = kzalloc(SPEAK_LEN, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	clt = ibtrs_clt_create(SPEAK_NAME, &opts, &speak_ops, NULL);
	if (IS_ERR(clt)) {
		err = PTR_ERR(clt);
		goto free;
	}
	err = ibtrs_clt_connect(clt, &path, 1);
	err = err ?: speak_open();
	if (!err)
		return 0;
	ibtrs_clt_close(clt);
free:
	kfree(buf);
	return err;
}

static void __exit speak_exit(void)
{
	ibtrs_clt_close(clt);
	kfree(buf);
}

module_init(speak_init);
module_exit(speak_exit);
MODULE_DESCRIPTION("a client that says what it is told to, for tests");
MODULE_LICENSE("GPL");
