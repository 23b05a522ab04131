// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path state table under long sequences of events, pumped as the driver pumps them: events
 * become bits, several may be pending, the lowest goes first. Each input byte posts one event (low
 * bits) and says whether the work item runs now (high bit). Properties: one teardown at a time,
 * each answered by one DRAINED; up and down alternate; after a CLOSE nothing but a later CONNECT
 * starts an attempt.
 */
#include "ibtrs/logic/path_sm.h"

#define REQUIRE(cond)	do { if (!(cond)) __builtin_trap(); } while (0)

struct driver {
	enum ibtrs_path_state state;
	unsigned int pending;
	bool teardown, attempt, published, timer, stop;
};

static void pump(struct driver *d)
{
	while (d->pending) {
		unsigned int ev = (unsigned int)__builtin_ctz(d->pending);
		struct ibtrs_path_step st = ibtrs_path_sm_step(d->state, ev);

		d->pending &= d->pending - 1;
		if (ev == IBTRS_PATH_EV_CLOSE)
			d->stop = true;
		if (ev == IBTRS_PATH_EV_CONNECT)
			d->stop = false;
		if (!st.taken) {
			REQUIRE(st.state == d->state && !st.actions);
			continue;
		}
		if (ev == IBTRS_PATH_EV_DRAINED) {
			REQUIRE(d->teardown);
			d->teardown = false;
		}
		if (ev == IBTRS_PATH_EV_READY) {
			REQUIRE(d->attempt);
			d->attempt = false;
		}
		if (st.actions & IBTRS_PATH_DO_DOWN) {
			REQUIRE(d->published);
			d->published = false;
		}
		if (st.actions & IBTRS_PATH_DO_TEARDOWN) {
			REQUIRE(!d->teardown);
			d->teardown = true;
			d->attempt = false;
		}
		if (st.actions & IBTRS_PATH_DO_DISARM) {
			REQUIRE(d->timer);
			d->timer = false;
		}
		if (st.actions & IBTRS_PATH_DO_ARM) {
			REQUIRE(!d->timer);
			d->timer = true;
		}
		if (st.actions & IBTRS_PATH_DO_CONNECT) {
			REQUIRE(!d->stop && !d->attempt && !d->teardown && !d->timer &&
				!d->published);
			d->attempt = true;
		}
		if (st.actions & IBTRS_PATH_DO_UP) {
			REQUIRE(!d->published);
			d->published = true;
		}
		if (st.actions & IBTRS_PATH_DO_CLOSED)
			REQUIRE(!d->attempt && !d->teardown && !d->timer && !d->published);
		d->state = st.state;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct driver d = { .state = IBTRS_PATH_IDLE };

	for (size_t i = 0; i < size; i++) {
		unsigned int ev = data[i] & 7;

		/* only a teardown posts DRAINED, only an attempt posts READY */
		if ((ev == IBTRS_PATH_EV_DRAINED && !d.teardown) ||
		    (ev == IBTRS_PATH_EV_READY && !d.attempt))
			continue;
		if (ev < IBTRS_PATH_EVENTS)
			d.pending |= 1u << ev;
		if (data[i] & 0x80)
			pump(&d);
	}
	/* whatever happened: a closer gets its answer */
	d.pending = 1u << IBTRS_PATH_EV_CLOSE;
	pump(&d);
	if (d.teardown) {
		d.pending = 1u << IBTRS_PATH_EV_DRAINED;
		pump(&d);
	}
	REQUIRE(d.state == IBTRS_PATH_CLOSED);
	return 0;
}
