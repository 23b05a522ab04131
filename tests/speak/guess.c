// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-stranger, third part: authentication, with any bytes and in any order.
 *
 *	echo "SEED COUNT" > guess	so many connections and messages, by who stands in `whom`
 *	cat guessed			how many; challenges, refusals and grants that came
 *
 * Each of GUESSES connections is somewhere in its exchange. What is due next is said mostly; it
 * may have other bytes, another length or an immediate, or be something else. Or the connection is
 * left as it is, or in the middle. tests/cases/trust/guesses says what must come of it.
 *
 * Locking: stranger_lock.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "ibtrs/core/key.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "tests/speak/stranger.h"

#define GUESSES		12
#define GUESS_LONGEST	(IBTRS_AUTH_MSG_MAX + 64)

static struct guess {
	struct stranger_conn s;
	struct ibtrs_auth auth;
	struct ibtrs_wire_auth_proof proof;	/* made when the challenge came */
} guesses[GUESSES];
static unsigned int nr_said, nr_challenges, nr_refused, nr_granted;

static void guess_req(struct guess *g, struct ibtrs_wire_auth_req *wire)
{
	struct ibtrs_auth_req req = { .recon_cnt = any(1 << 16), .ext = IBTRS_EXT_WORDS };
	struct ibtrs_keys keys = { .nr = 1 };

	memset(req.path_uuid, any(256), sizeof(req.path_uuid));
	memset(req.session_uuid, any(256), sizeof(req.session_uuid));
	memcpy(keys.key[0], me.secret, IBTRS_KEY_LEN);
	ibtrs_auth_req_encode(wire, &req);
	ibtrs_auth_clt_init(&g->auth, wire, me.name, &keys);
}

static void guess_connect(struct guess *g)
{
	struct ibtrs_wire_auth_req wire;
	u8 len = sizeof(wire);

	guess_req(g, &wire);
	if (!any(8))
		stranger_spoil((u8 *)&wire, sizeof(wire));
	if (!any(16))
		len = any(sizeof(wire) + 1);
	if (stranger_connect(&g->s, stranger_to, &wire, len)) {
		stranger_leave(&g->s);
		return;
	}
	ibtrs_conn_gids(g->s.c.id, g->auth.t.client, g->auth.t.server);
}

/* What the server has answered, if anything. */
static void guess_hear(struct guess *g)
{
	char text[IBTRS_WORDS_LEN];
	const char *why;

	if (!try_wait_for_completion(&g->s.came) || g->s.len < 0)
		return;
	ibtrs_iu_sync_cpu(&g->s.in);
	if (ibtrs_auth_verdict_is(g->s.in.buf, g->s.len)) {
		g->auth.state = IBTRS_AUTH_PROVED;	/* whatever it has proved */
		if (ibtrs_auth_clt_verdict(&g->auth, g->s.in.buf, g->s.len, text))
			nr_refused++;
		else
			nr_granted++;
	} else {
		nr_challenges++;
		prandom_bytes_state(&stranger_rnd, g->proof.mac, sizeof(g->proof.mac));
		ibtrs_auth_proof_encode(&g->proof, any(3), g->proof.mac);
		ibtrs_auth_clt_challenge(&g->auth, &ibtrs_auth_kernel, g->s.in.buf, g->s.len,
					 &g->proof, &why);
	}
	stranger_expect(&g->s);
}

/* What is due: HELLO first. */
static u32 guess_due(struct guess *g, u8 *m)
{
	u8 nonce[IBTRS_NONCE_LEN];
	const char *why;

	if (g->auth.state != IBTRS_AUTH_NEW) {
		memcpy(m, &g->proof, sizeof(g->proof));
		return sizeof(g->proof);
	}
	prandom_bytes_state(&stranger_rnd, nonce, sizeof(nonce));
	if (ibtrs_auth_clt_hello(&g->auth, g->s.priv, g->s.priv_len, nonce, (void *)m, &why))
		return any(GUESS_LONGEST);
	return sizeof(struct ibtrs_wire_auth_hello);
}

static void guess_say(struct guess *g)
{
	struct ib_sge sge;
	u8 *m = stranger_room(&g->s, &sge);
	u32 len = guess_due(g, m);

	if (!any(6))
		stranger_spoil(m, len);
	if (!any(12))
		len = any(GUESS_LONGEST);
	stranger_post_send(&g->s, &sge, len, !any(24));
}

static void guess_once(void)
{
	struct guess *g = &guesses[any(GUESSES)];

	if (!g->s.c.id) {
		guess_connect(g);
	} else if (READ_ONCE(g->s.gone) || !any(12)) {
		guess_hear(g);
		stranger_leave(&g->s);
		return;
	} else {
		guess_hear(g);
		/* the server needs a while, and refuses after a second */
		if (any(2)) {
			msleep(any(20));
			return;
		}
		if (any(16))
			guess_say(g);
		else
			stranger_post_imm(&g->s, prandom_u32_state(&stranger_rnd));
	}
	nr_said++;
}

static int guess_set(const char *val, const struct kernel_param *kp)
{
	unsigned int seed, n, i;

	if (sscanf(val, "%u %u", &seed, &n) != 2)
		return -EINVAL;
	guard(mutex)(&stranger_lock);
	prandom_seed_state(&stranger_rnd, seed);
	nr_said = nr_challenges = nr_refused = nr_granted = 0;
	while (nr_said < n && !signal_pending(current))
		guess_once();
	msleep(1500);		/* a refusal comes after a second */
	for (i = 0; i < GUESSES; i++) {
		guess_hear(&guesses[i]);
		stranger_leave(&guesses[i].s);
	}
	return 0;
}

static const struct kernel_param_ops guess_ops = { .set = guess_set };
module_param_cb(guess, &guess_ops, NULL, 0200);

static int guessed_get(char *text, const struct kernel_param *kp)
{
	guard(mutex)(&stranger_lock);
	return sysfs_emit(text, "%u %u %u %u\n", nr_said, nr_challenges, nr_refused, nr_granted);
}

static const struct kernel_param_ops guessed_ops = { .get = guessed_get };
module_param_cb(guessed, &guessed_ops, NULL, 0444);
