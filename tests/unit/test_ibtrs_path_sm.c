// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client path's state table: each cell as decided, and what must hold along every sequence of
 * seven events, likely or not. The sequences run against a model of what each action starts and
 * stops.
 */
#include "ibtrs/logic/path_sm.h"
#include "unit.h"

#define S(x)	IBTRS_PATH_##x
#define E(x)	IBTRS_PATH_EV_##x
#define A(x)	IBTRS_PATH_DO_##x

UNIT_TEST(path_sm_every_cell)
{
	static const struct {
		enum ibtrs_path_state from;
		enum ibtrs_path_event ev;
		enum ibtrs_path_state to;
		unsigned int actions;
	} cells[] = {
		{ S(IDLE), E(CONNECT), S(CONNECTING), A(CONNECT) },
		{ S(IDLE), E(CLOSE), S(CLOSED), A(CLOSED) },
		{ S(CONNECTING), E(READY), S(UP), A(UP) },
		{ S(CONNECTING), E(FAIL), S(BREAKING), A(TEARDOWN) },
		{ S(CONNECTING), E(CLOSE), S(CLOSING), A(TEARDOWN) },
		{ S(UP), E(FAIL), S(BREAKING), A(DOWN) | A(TEARDOWN) },
		{ S(UP), E(CLOSE), S(CLOSING), A(DOWN) | A(TEARDOWN) },
		{ S(BREAKING), E(DRAINED), S(WAITING), A(ARM) },
		{ S(BREAKING), E(CLOSE), S(CLOSING), 0 },
		{ S(BREAKING), E(GIVE_UP), S(CLOSING), 0 },
		{ S(WAITING), E(CONNECT), S(CONNECTING), A(DISARM) | A(CONNECT) },
		{ S(WAITING), E(RETRY), S(CONNECTING), A(DISARM) | A(CONNECT) },
		{ S(WAITING), E(CLOSE), S(CLOSED), A(DISARM) | A(CLOSED) },
		{ S(WAITING), E(GIVE_UP), S(CLOSED), A(DISARM) | A(CLOSED) },
		{ S(CLOSING), E(DRAINED), S(CLOSED), A(CLOSED) },
		{ S(CLOSED), E(CONNECT), S(CONNECTING), A(CONNECT) },
		{ S(CLOSED), E(CLOSE), S(CLOSED), A(CLOSED) },
	};

	for (unsigned int s = 0; s < IBTRS_PATH_STATES; s++) {
		for (unsigned int ev = 0; ev < IBTRS_PATH_EVENTS; ev++) {
			struct ibtrs_path_step got = ibtrs_path_sm_step(s, ev),
				want = { .state = s };

			for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
				if (cells[i].from == s && cells[i].ev == ev)
					want = (struct ibtrs_path_step){ cells[i].to,
									 cells[i].actions, true };
			UNIT_ROW("%s + event %u", ibtrs_path_sm_state_name(s), ev);
			CHECK_EQ(got.taken, want.taken);
			CHECK_EQ(got.state, want.state);
			CHECK_EQ(got.actions, want.actions);
		}
	}
}

UNIT_TEST(path_sm_names)
{
	for (unsigned int s = 0; s < IBTRS_PATH_STATES; s++) {
		CHECK(strlen(ibtrs_path_sm_state_name(s)) > 1);
		for (unsigned int o = 0; o < s; o++)
			CHECK(strcmp(ibtrs_path_sm_state_name(s), ibtrs_path_sm_state_name(o)));
	}
	CHECK_STR(ibtrs_path_sm_state_name(IBTRS_PATH_STATES), "?");
}

UNIT_TEST(path_sm_out_of_range_means_nothing)
{
	CHECK(!ibtrs_path_sm_step(IBTRS_PATH_STATES, E(CLOSE)).taken);
	CHECK(!ibtrs_path_sm_step(S(UP), IBTRS_PATH_EVENTS).taken);
	CHECK_EQ(ibtrs_path_sm_step(S(UP), IBTRS_PATH_EVENTS).state, S(UP));
}

/* What runs in the world because of the actions so far. */
struct world {
	enum ibtrs_path_state state;
	bool attempt, published, teardown, timer;
	bool closed_by_hand;		/* since the last CONNECT */
	unsigned int ups, downs;
};

static unsigned long sequences;
static unsigned int seen_states;

static bool step(struct world *w, enum ibtrs_path_event ev)
{
	enum ibtrs_path_state from = w->state;
	struct ibtrs_path_step st = ibtrs_path_sm_step(from, ev);
	bool ok = true;

	if (!st.taken)
		return CHECK(st.state == from && !st.actions);

	/* What the event says about the world, before the reaction to it. */
	if (ev == E(DRAINED)) {
		ok &= CHECK(w->teardown);
		w->teardown = false;
	}
	if (ev == E(READY)) {
		ok &= CHECK(w->attempt);
		w->attempt = false;
	}
	if (ev == E(CLOSE))
		w->closed_by_hand = true;
	if (ev == E(CONNECT))
		w->closed_by_hand = false;

	/* The reaction, in the order of the bits. */
	if (st.actions & A(DOWN)) {
		ok &= CHECK(w->published);
		w->published = false;
		w->downs++;
	}
	if (st.actions & A(TEARDOWN)) {
		ok &= CHECK(!w->teardown && !w->published);
		w->teardown = true;
		w->attempt = false;
	}
	if (st.actions & A(DISARM)) {
		ok &= CHECK(w->timer);
		w->timer = false;
	}
	if (st.actions & A(ARM)) {
		ok &= CHECK(!w->timer && !w->teardown && !w->attempt);
		w->timer = true;
	}
	if (st.actions & A(CONNECT)) {
		ok &= CHECK(!w->attempt && !w->teardown && !w->timer && !w->published);
		ok &= CHECK(!w->closed_by_hand);
		w->attempt = true;
	}
	if (st.actions & A(UP)) {
		ok &= CHECK(ev == E(READY) && !w->published);
		w->published = true;
		w->ups++;
	}
	if (st.actions & A(CLOSED))
		ok &= CHECK(!w->attempt && !w->teardown && !w->timer && !w->published);
	w->state = st.state;

	/* Each state is the name of what runs. */
	ok &= CHECK_EQ(w->attempt, w->state == S(CONNECTING));
	ok &= CHECK_EQ(w->published, w->state == S(UP));
	ok &= CHECK_EQ(w->teardown, w->state == S(BREAKING) || w->state == S(CLOSING));
	ok &= CHECK_EQ(w->timer, w->state == S(WAITING));
	ok &= CHECK_EQ(!!(st.actions & A(CLOSED)), w->state == S(CLOSED));
	ok &= CHECK_EQ(w->ups - w->downs, w->published);
	seen_states |= 1u << w->state;
	return ok;
}

/* A closer always gets its answer: at once, or when the teardown that runs has drained. */
static bool close_ends(struct world w)
{
	bool ok = step(&w, E(CLOSE));

	if (w.state == S(CLOSED))
		return ok;
	ok &= CHECK_EQ(w.state, S(CLOSING));
	/* late news of the old life change nothing */
	ok &= step(&w, E(FAIL)) & step(&w, E(READY)) & step(&w, E(RETRY)) & step(&w, E(GIVE_UP));
	ok &= CHECK_EQ(w.state, S(CLOSING));
	ok &= step(&w, E(DRAINED));
	return ok & CHECK_EQ(w.state, S(CLOSED));
}

static bool walk(struct world w, unsigned int depth)
{
	sequences++;
	if (!close_ends(w))
		return false;
	for (unsigned int ev = 0; depth && ev < IBTRS_PATH_EVENTS; ev++) {
		struct world n = w;

		if (!step(&n, ev) || !walk(n, depth - 1)) {
			fprintf(stderr, "  ... %s + event %u\n",
				ibtrs_path_sm_state_name(w.state), ev);
			return false;
		}
	}
	return true;
}

UNIT_TEST(path_sm_all_sequences)
{
	CHECK(walk((struct world){ .state = S(IDLE) }, 7));
	CHECK_EQ(seen_states | 1u << S(IDLE), (1u << IBTRS_PATH_STATES) - 1);
	CHECK_EQ(sequences, 960800);	/* (7^8 - 1) / 6 */
}

/*
 * The pump: pending events are bits, the lowest first. Whatever is pending together with CLOSE, the
 * path ends closed or closing, unless a CONNECT was asked for.
 */
UNIT_TEST(path_sm_close_goes_first)
{
	for (unsigned int s = 0; s < IBTRS_PATH_STATES; s++) {
		for (unsigned int pending = 0; pending < 1u << IBTRS_PATH_EVENTS; pending++) {
			enum ibtrs_path_state st = s;

			if (!(pending & 1u << E(CLOSE)) || pending & 1u << E(CONNECT))
				continue;
			for (unsigned int ev = 0; ev < IBTRS_PATH_EVENTS; ev++)
				if (pending & 1u << ev)
					st = ibtrs_path_sm_step(st, ev).state;
			UNIT_ROW("%s, pending 0x%x", ibtrs_path_sm_state_name(s), pending);
			CHECK(st == S(CLOSED) || st == S(CLOSING));
		}
	}
}
