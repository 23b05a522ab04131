// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Messages: SESS_INFO, OPEN and CLOSE.
 *
 * One exchange at a time: by ibnbd_disk_open() before the control thread runs, by that thread, and
 * by ibnbd_disk_close() behind it. Whoever asks compares the link before and after (disk_ask_on()):
 * an answer is void if the session has been without a path meanwhile.
 */
#include "ibnbd/user/disk.h"

#define ASK_INFO_MS	3000
#define ASK_PAGE	4096u		/* the largest logical block, as on the kernel's client */

bool disk_ask_unreached(int err)
{
	return err == -ENOTCONN || err == -ECONNRESET || err == -ETIMEDOUT || err == -EAGAIN ||
	       err == -ENOMEM;
}

bool disk_ask_on(struct ibnbd_disk *d, u32 ups)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };

	ibtrs_clt_info(d->clt, &info);
	return info.paths_up && info.ups == ups;
}

static int ask_info(struct ibnbd_disk *d, u32 ups, int timeout_ms, const char **why)
{
	const struct ibnbd_sess_info offer = {
		.version	= IBNBD_PROTO_MAJOR,
		.features	= IBNBD_FEAT_KNOWN,
	};
	struct ibnbd_wire_sess_info req, rsp;
	struct ibnbd_sess_info info;
	int err;

	ibnbd_msg_sess_info_encode(&req, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(d->clt, &req, sizeof(req), &rsp, sizeof(rsp),
			     timeout_ms < ASK_INFO_MS ? timeout_ms : ASK_INFO_MS);
	if (!err)
		err = ibnbd_msg_sess_info_rsp_decode(&rsp, sizeof(rsp), offer.features, &info, why);
	if (err)
		return err;
	d->version = info.version;
	d->features = info.features;
	d->known_ups = ups;
	return 0;
}

static void ask_remote(struct ibnbd_disk *d, enum ibnbd_open_event ev)
{
	pthread_mutex_lock(&d->lock);
	disk_remote(d, ev);
	pthread_mutex_unlock(&d->lock);
}

static int ask_open(struct ibnbd_disk *d, struct disk_grant *g, int timeout_ms, const char **why)
{
	const struct ibnbd_open m = { .access = d->access, .name = d->name };
	union {
		struct ibnbd_wire_open_rsp_dur rsp;
		struct ibnbd_wire_open_refused refused;
	} answer;
	u32 len = ibnbd_msg_open_room(d->features);
	struct ibnbd_wire_open req;
	int err;

	err = ibnbd_msg_open_encode(&req, &m);
	if (err)
		return err;
	err = ibtrs_clt_call(d->clt, &req, sizeof(req), &answer, len, timeout_ms);
	if (err)
		return err;
	if (d->features & IBNBD_FEAT_WORDS &&
	    ibnbd_msg_open_refused_decode(&answer, len, &d->said)) {
		if (d->said.text[0])
			*why = d->said.text;
		return d->said.err;
	}
	return ibnbd_msg_open_rsp_decode(&answer, len, d->features, ASK_PAGE, &g->rsp, why);
}

/* The server has the disk open now, so a CLOSE will be due, even if we refuse the answer. */
static void ask_note(struct ibnbd_disk *d, struct disk_grant *g)
{
	pthread_mutex_lock(&d->lock);
	d->remote_id = g->rsp.device_id;
	disk_remote(d, g->features & IBNBD_FEAT_IDENTITY ? IBNBD_OPEN_EV_UNIQUE :
							   IBNBD_OPEN_EV_LINK);
	/* The block size of a disk in use does not change. */
	ibnbd_limits_keep_block(&d->grant.rsp, &g->rsp);
	pthread_mutex_unlock(&d->lock);
}

int disk_ask(struct ibnbd_disk *d, u32 ups, struct disk_grant *g, int timeout_ms, const char **why)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct ibnbd_limits_in in;
	int err;

	*why = NULL;
	memset(g, 0, sizeof(*g));
	err = d->known_ups == ups ? 0 : ask_info(d, ups, timeout_ms, why);
	if (err)
		return err;
	g->ups = ups;
	g->version = d->version;
	g->features = d->features;
	ask_remote(d, IBNBD_OPEN_EV_ASK);
	err = ask_open(d, g, timeout_ms, why);
	if (err) {
		if (!disk_ask_unreached(err))
			ask_remote(d, IBNBD_OPEN_EV_REFUSED);
		return err;
	}
	ask_note(d, g);
	ibtrs_clt_info(d->clt, &info);
	in = (struct ibnbd_limits_in){
		.max_io_bytes	= info.max_io_size,
		.max_segments	= U16_MAX,
		.features	= g->features,
		.write_zeroes	= (enum ibnbd_write_zeroes)d->opts.write_zeroes,
		.write_cache	= (enum ibnbd_write_cache)d->opts.write_cache,
	};
	return ibnbd_limits_build(&g->rsp, &in, &g->lim, why);
}

void disk_ask_close(struct ibnbd_disk *d, enum ibnbd_dev_state only_in, bool nowait,
		    int timeout_ms)
{
	struct ibnbd_wire_close req;
	const char *why;
	bool due, up;
	int err;
	u32 ups;

	pthread_mutex_lock(&d->lock);
	up = d->up;
	ups = d->ups;
	pthread_mutex_unlock(&d->lock);
	/* It says whether the number of an earlier link means anything to this server. */
	if (up && d->known_ups != ups)
		ask_info(d, ups, timeout_ms, &why);
	pthread_mutex_lock(&d->lock);
	due = d->up && d->state == only_in &&
	      ibnbd_open_sm_can_close(d->remote, d->known_ups == d->ups &&
						 d->features & IBNBD_FEAT_IDENTITY);
	/* A repeated CLOSE does not wait for the disk, which has had its time. */
	nowait |= !ibnbd_open_sm_is_open(d->remote);
	if (due)
		disk_remote(d, IBNBD_OPEN_EV_CLOSE);
	ibnbd_msg_close_encode(&req, d->remote_id, nowait);
	pthread_mutex_unlock(&d->lock);
	if (!due)
		return;
	err = ibtrs_clt_call(d->clt, &req, sizeof(req), NULL, 0, timeout_ms);
	if (!disk_ask_unreached(err))
		ask_remote(d, IBNBD_OPEN_EV_CLOSED);
}
