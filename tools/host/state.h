/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All that the drivers show, read once: the rows of state_fields.h as structs. Text is NULL, and a
 * number is SYSFS_UNKNOWN, where the driver does not show it. The objects are read one after
 * another, so an object that disappears during the reading is incomplete.
 */
#ifndef TOOLS_STATE_H
#define TOOLS_STATE_H

#include "ibnbd/logic/mapopt.h"
#include "tools/host/state_fields.h"
#include "tools/host/sysfs.h"

#define STATE_CLIENT	"class/ibnbd-client/ctl"
#define STATE_SERVER	"class/ibnbd-server/ctl"
#define STATE_SERVERD	"/run/ibnbd-serverd"	/* the same, of ibnbd-serverd */

enum state_kind { STATE_TEXT, STATE_NUM, STATE_BYTES, STATE_NS, STATE_FLAG };

/* A row of state_fields.h. */
struct state_field {
	const char *key;
	const char *heading;
	enum state_kind kind;
	size_t offset;			/* of the member */
	const char *file;		/* NULL: none of its own */
	enum ibnbd_mapopt_id option;	/* IBNBD_OPT_none: none */
	const char *help;
};

#define IBNBD_OPT_none	IBNBD_MAPOPT_COUNT

struct state_type {
	const struct state_field *fields;
	size_t nr;
	size_t size;			/* of an object, which begins with its dir */
};

extern const struct state_type state_type_dev, state_type_session, state_type_path,
	state_type_export, state_type_open;

/* The text of field @f of an object. */
static inline char *state_text(const struct state_field *f, const void *object)
{
	return *(char *const *)((const char *)object + f->offset);
}

static inline int64_t state_num(const struct state_field *f, const void *object)
{
	return *(const int64_t *)((const char *)object + f->offset);
}

#define STATE_TYPE_TEXT		char *
#define STATE_TYPE_NUM		int64_t
#define STATE_TYPE_BYTES	int64_t
#define STATE_TYPE_NS		int64_t
#define STATE_TYPE_FLAG		int64_t
#define STATE_MEMBER(field, heading, kind, ...) STATE_TYPE_##kind field;

struct state_path {
	char *dir;			/* in sysfs */
	STATE_PATH(STATE_MEMBER)
	int64_t up;			/* it is connected */
	/* the path has failed so often lately that it is used less than the others */
	int64_t marginal;
};

struct state_session {
	char *dir;
	STATE_SESSION(STATE_MEMBER)
	struct state_path *paths;
};

struct state_dev {
	char *dir;
	STATE_DEV(STATE_MEMBER)
	int64_t read_ms, write_ms;
};

struct state_open {
	char *dir;
	STATE_OPEN(STATE_MEMBER)
};

struct state_export {
	char *dir;
	STATE_EXPORT(STATE_MEMBER)
	struct state_open *opens;
};

struct state {
	bool client, server;	/* loaded? */
	bool serverd;		/* ibnbd-serverd runs, as a service */
	struct state_dev *devs;
	struct state_session *sessions;		/* client side */
	struct state_session *srv_sessions;	/* those behind them in the same array */
	struct state_export *exports;
	size_t nr_devs, nr_sessions, nr_srv_sessions, nr_exports;
};

/* Does ibnbd-serverd run, as a service? */
bool state_serverd(void);
struct state *state_read(void);
void state_free(struct state *s);
DEFINE_FREE(state_free, struct state *)

/* NULL: there is none, or a device does not tell its own. */
struct state_session *state_session(struct state *s, const char *name);
/*
 * The one of @nr objects at @all that the user's @word names: by its plain name, or by its name as
 * the outputs escape it. NULL with @why: the word is the plain name of one object and the escaped
 * name of another; the caller prints @why. NULL without @why: no object has that name.
 */
typedef bool (*state_is)(const void *one, const char *word);
void *state_meant(const void *all, size_t nr, size_t size, state_is is, const char *word,
		  char **why);
bool state_is_session(const void *session, const char *word);
bool state_is_of_session(const void *dev, const char *word);
bool state_is_export(const void *export, const char *word);
bool state_is_open(const void *open, const char *word);
/*
 * The same for commands that change nothing: of two sessions it returns the one with this plain
 * name.
 */
struct state_session *state_session_said(struct state *s, const char *word);
/*
 * Find a device by ibnbdN, /dev/ibnbdN, a name, a link, DEVICE@SESSION, or DEVICE if only one has
 * it; plain, or as the outputs escape it. NULL: @why says what was wrong.
 */
struct state_dev *state_dev(struct state *s, const char *word, char **why);
struct state_dev *state_dev_of(struct state *s, const char *session, const char *device_path);
/* The one of this name in the kernel, or NULL; and that path of the client, at another time. */
const struct state_dev *state_dev_called(const struct state *s, const char *kname);
const struct state_path *state_path_then(struct state *then, const struct state_path *p);
/* Name of the link in ctl/devices. Allocated. */
char *state_dev_link(const char *session, const char *device_path);

#endif
