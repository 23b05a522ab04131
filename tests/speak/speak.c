// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-speak: a client without a block layer, which says to a server what it is told to, sense or
 * not.
 *
 *	modprobe ibnbd-speak to=ip:10.0.0.2 disk=ram0		opens a session "speak", and the
 *								disk in it
 *	echo "dir=w rw=0x701 bytes=4096 len=4096" > say		sends one message; the write fails
 *								with what the server answers
 *	cat chunks						the highest address of a chunk
 *	echo "SEED COUNT" > wild				as many messages of which nobody
 *								knows what they say: each is
 *								answered, or the write fails
 *	cat wild						how many, and how many were good
 *
 * At load: name= is the session's name, uuid= (32 hex digits) the id that it pretends to have,
 * auth= the key that it proves; without disk= nothing is opened.
 *
 * A message is IO, of the disk, for its first sector, of 32 bytes, unless it says otherwise: type=
 * dev= sector= hdr=. len= is the length of the data beside it, fill= the byte that it consists of;
 * a read is given that many bytes. slot= is the slot, token= the number that its request carries.
 * What a session of libibtrs can say is said by ibtrs-peer (tests/vm/messages.py).
 */
#include <linux/completion.h>
#include <linux/hex.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "ibnbd/proto/msg.h"
#include "ibtrs/client/session.h"

#define SPEAK_LEN	SZ_64K
#define SPEAK_MS	20000

static char *to = "";
module_param(to, charp, 0444);
static char *disk = "";
module_param(disk, charp, 0444);
static char *name = "speak";
module_param(name, charp, 0444);
static char *uuid = "";
module_param(uuid, charp, 0444);
static char *auth = "";
module_param(auth, charp, 0444);

static DEFINE_MUTEX(speak_lock);	/* one word at a time, and the data that belongs to it */
static struct ibtrs_clt *clt;
static u32 device_id;
static u8 *buf;
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
	unsigned int type, dev, rw, bytes, len, hdr, fill, slot;
	u64 sector, token;
	bool write;
};

static int speak_word(char *word, struct speak_words *w)
{
	static const char * const names[] = { "type", "dev", "rw", "bytes", "len", "hdr",
					      "fill", "slot" };
	unsigned int *const values[] = { &w->type, &w->dev, &w->rw, &w->bytes, &w->len, &w->hdr,
					 &w->fill, &w->slot };
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
	if (!strcmp(word, "token"))
		return kstrtou64(value, 0, &w->token);
	i = match_string(names, ARRAY_SIZE(names), word);
	return i < 0 ? i : kstrtouint(value, 0, values[i]);
}

/* The header is in the slot. */
static int speak_post(u32 slot, bool write, u32 hdr, u32 len)
{
	int err;

	sg_init_one(&sg, buf, len ?: 1);
	io = (struct ibtrs_clt_io) {
		.slot		= slot,
		.dir		= write ? IBTRS_WRITE : IBTRS_READ,
		.usr_len	= hdr,
		.len		= len,
		.nents		= !!len,
		.sgl		= &sg,
		.done		= speak_done,
	};
	reinit_completion(&answered);
	err = ibtrs_clt_submit(clt, &io, NULL);	/* the answer may be there before this returns */
	if (err)
		return err;
	lost = !wait_for_completion_timeout(&answered, msecs_to_jiffies(SPEAK_MS));
	return lost ? -ETIME : answer;
}

static int speak_send(const struct speak_words *w)
{
	struct ibnbd_wire_io *msg;

	if (lost || w->len > SPEAK_LEN || w->hdr > sizeof(*msg) || w->slot >= clt->slots.nr_user)
		return -E2BIG;
	/* Its sender counts it up once more. */
	if (w->token) {
		clt->slots.reqs[w->slot].token = w->token - 1;
		clt->slots.reqs[w->slot].life =
			list_first_entry(&clt->paths, struct ibtrs_clt_path, entry)->life;
	}
	msg = ibtrs_clt_hdr(clt, w->slot);
	memset(msg, 0, sizeof(*msg));
	msg->hdr.type = cpu_to_le16(w->type);
	msg->device_id = cpu_to_le32(w->dev);
	msg->sector = cpu_to_le64(w->sector);
	msg->rw = cpu_to_le32(w->rw);
	msg->bytes = cpu_to_le32(w->bytes);
	memset(buf, w->fill, SPEAK_LEN);
	return speak_post(w->slot, w->write, w->hdr, w->len);
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

/* The highest address that the server has given to a chunk. */
static int chunks_get(char *text, const struct kernel_param *kp)
{
	struct ibtrs_clt_path *path;
	u64 most = 0;
	u32 i;

	if (!clt)
		return -ENOTCONN;
	guard(mutex)(&clt->lock);
	list_for_each_entry(path, &clt->paths, entry)
		for (i = 0; path->hs.chunks && i < path->limits.queue_depth; i++)
			most = max(most, path->hs.chunks[i].addr);
	return sysfs_emit(text, "%#llx\n", most);
}

static const struct kernel_param_ops chunks_ops = { .get = chunks_get };
module_param_cb(chunks, &chunks_ops, NULL, 0444);

static int speak_greet(void)
{
	struct ibnbd_sess_info offer = { .version = IBNBD_PROTO_MAJOR };
	struct ibnbd_wire_sess_info info, told;
	struct ibnbd_sess_info agreed;
	const char *why;
	int err;

	ibnbd_msg_sess_info_encode(&info, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(clt, 0, IBTRS_READ, &info, sizeof(info), &told, sizeof(told),
			     SPEAK_MS);
	return err ?: ibnbd_msg_sess_info_rsp_decode(&told, sizeof(told), 0, &agreed, &why);
}

static int speak_open(void)
{
	struct ibnbd_open m = { .access = IBNBD_ACCESS_RW, .name = disk };
	struct ibnbd_wire_open_rsp rsp;
	struct ibnbd_wire_open req;
	struct ibnbd_open_rsp opened;
	const char *why;
	int err;

	err = ibnbd_msg_open_encode(&req, &m);
	err = err ?: ibtrs_clt_call(clt, 0, IBTRS_READ, &req, sizeof(req), &rsp,
				    sizeof(rsp), SPEAK_MS);
	err = err ?: ibnbd_msg_open_rsp_decode(&rsp, sizeof(rsp), 0, PAGE_SIZE, &opened, &why);
	if (!err)
		device_id = opened.device_id;
	return err;
}

/* ---- messages of which nobody knows what they say ------------------------ */

static struct rnd_state wild_rnd;
static unsigned int wild_sent, wild_good;

static u32 wild_any(u32 below)
{
	return prandom_u32_state(&wild_rnd) % below;
}

/* OPEN of a name of any bytes, or of one that leads somewhere; returns the length of the header. */
static u32 wild_open(struct ibnbd_wire_open *w)
{
	static const char *const names[] = { "ram0", "/ram0", "//ram1", "../ram0", ".", "ram0/",
					     "a/../b", "mem", "null", "ram0%s%n", "" };
	u32 n = wild_any(sizeof(w->name) + 1);

	w->hdr.type = cpu_to_le16(IBNBD_MSG_OPEN);
	w->access_mode = wild_any(4);
	if (wild_any(2))
		prandom_bytes_state(&wild_rnd, w->name, n);
	else
		strscpy((char *)w->name, names[wild_any(ARRAY_SIZE(names))], sizeof(w->name));
	return sizeof(*w);
}

static u32 wild_io(struct ibnbd_wire_io *w, u32 len)
{
	w->hdr.type = cpu_to_le16(IBNBD_MSG_IO);
	w->device_id = cpu_to_le32(wild_any(4) ? device_id : wild_any(16));
	w->sector = cpu_to_le64(wild_any(4) ? wild_any(64) :
					      (u64)prandom_u32_state(&wild_rnd) << wild_any(33));
	w->rw = cpu_to_le32(wild_any(8) | wild_any(16) << 8);
	w->bytes = cpu_to_le32(wild_any(4) ? len : prandom_u32_state(&wild_rnd));
	return sizeof(*w);
}

static int wild_one(void)
{
	u32 slot = wild_any(min(clt->slots.nr_user, 8u)), hdr, len = wild_any(4) << 12, n;
	u8 *msg = ibtrs_clt_hdr(clt, slot);
	bool write = wild_any(2);

	memset(msg, 0, IBTRS_CLT_USR_HDR_MAX);
	switch (wild_any(8)) {
	case 0:
		((struct ibnbd_wire_hdr *)msg)->type = cpu_to_le16(wild_any(10));
		hdr = 36;
		break;
	case 1:
	case 2:
		hdr = wild_open((void *)msg);
		write = false;
		len = 192;
		break;
	case 3:
		((struct ibnbd_wire_hdr *)msg)->type = cpu_to_le16(IBNBD_MSG_CLOSE);
		((struct ibnbd_wire_close *)msg)->device_id = cpu_to_le32(1 + wild_any(1000));
		hdr = sizeof(struct ibnbd_wire_close);
		break;
	default:
		hdr = wild_io((void *)msg, len);
	}
	for (n = wild_any(8) ? 0 : wild_any(6); n; n--)
		msg[wild_any(hdr)] = wild_any(256);
	if (!wild_any(8))
		hdr = 4 + wild_any(IBTRS_CLT_USR_HDR_MAX - 3);
	if (!wild_any(8))
		len = wild_any(SPEAK_LEN);
	return speak_post(slot, write, hdr, len);
}

static int wild_set(const char *val, const struct kernel_param *kp)
{
	unsigned int seed, n;
	int err = 0;

	if (!clt)
		return -ENOTCONN;
	if (sscanf(val, "%u %u", &seed, &n) != 2)
		return -EINVAL;
	guard(mutex)(&speak_lock);
	prandom_seed_state(&wild_rnd, seed);
	prandom_bytes_state(&wild_rnd, buf, SPEAK_LEN);
	for (; n && !lost; n--) {
		err = wild_one();
		if (err == -ETIME)
			return err;
		wild_sent++;
		wild_good += !err;
		cond_resched();
	}
	return 0;
}

static int wild_get(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%u %u\n", wild_sent, wild_good);
}

static const struct kernel_param_ops wild_ops = { .set = wild_set, .get = wild_get };
module_param_cb(wild, &wild_ops, NULL, 0644);

static int speak_begin(void)
{
	int err = 0;

	/*
	 * In somebody else's session the numbers of its slots are not ours, and what we say is old.
	 * With a key of our own the session is ours, too, whatever its uuid.
	 */
	if (!*uuid || *auth)
		err = speak_greet();
	if (!err && *disk)
		err = speak_open();
	if (err)
		pr_err("%s: %d\n", disk, err);
	return err;
}

static int __init speak_init(void)
{
	struct ibtrs_clt_opts opts = { .max_reconnect_attempts = -1 };
	struct ibtrs_addr_pair path;
	const char *why;
	int err;

	err = ibtrs_addr_pair_parse(to, strlen(to), &path, &why);
	if (err)
		return err;
	buf = kzalloc(SPEAK_LEN, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	strscpy(opts.auth, auth, sizeof(opts.auth));
	clt = ibtrs_clt_create(name, &opts, &speak_ops, NULL);
	if (IS_ERR(clt)) {
		err = PTR_ERR(clt);
		goto free;
	}
	err = *uuid ? hex2bin(clt->uuid, uuid, sizeof(clt->uuid)) : 0;
	err = err ?: ibtrs_clt_connect(clt, &path, 1);
	err = err ?: speak_begin();
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
