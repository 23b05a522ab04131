// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server looks into its search path only when a client asks for a name. The commands that list
 * names walk through it as the server would: a link may be the last part of a name, or the
 * directory of a session, and no directory in between.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ibnbd/logic/export.h"
#include "tools/cmd/server.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

struct offers_walk {
	bool (*each)(const struct server_offer *o, void *arg);
	void *arg;
	char **late;		/* instead of @each: takes the first link that leads nowhere */
};

static bool offers_late(const struct offers_walk *w, const char *path, const char *shown)
{
	char to[4096];
	ssize_t n = w->late ? readlink(path, to, sizeof(to) - 1) : -1;

	if (n < 0)
		return false;
	to[n] = 0;
	*w->late = say_fmt("%s (%s)", shown, to);
	return true;
}

static char *offers_below(const char *dir, const char *name)
{
	return dir ? say_fmt("%s/%s", dir, name) : say_dup(name);
}

/*
 * @shown, @name: of the directory @dir; NULL: names begin below it. @deep: how many directories
 * below this one are listed. @sessions: the names in it are sessions.
 */
static bool offers_dir(const struct offers_walk *w, const char *dir, const char *shown,
		       const char *name, unsigned int deep, bool sessions)
{
	/* a name may begin with a dot */
	char **names __free(sysfs_list_free) = sysfs_list_all(dir);
	bool done = false;

	for (size_t i = 0; names[i] && !done; i++) {
		char *path __free(free) = say_fmt("%s/%s", dir, names[i]),
		     *as __free(free) = offers_below(shown, names[i]),
		     *of __free(free) = sessions ? NULL : offers_below(name, names[i]);
		struct server_offer o = { .shown = as, .name = of, .path = path };
		struct stat st, link;
		bool enter;

		if (stat(path, &st))
			done = offers_late(w, path, as);
		else if (!lstat(path, &link) &&
		    (S_ISDIR(st.st_mode) ||
		     (!sessions && (S_ISBLK(st.st_mode) || S_ISREG(st.st_mode))))) {
			o.is_dir = S_ISDIR(st.st_mode);
			enter = o.is_dir && (sessions || !S_ISLNK(link.st_mode));
			o.beyond = enter && !deep;
			done = w->each && w->each(&o, w->arg);
			if (!done && enter && deep)
				done = offers_dir(w, path, as, of, deep - 1, false);
		}
	}
	return done;
}

static bool offers_walk(const struct offers_walk *w, const char *search)
{
	char *top __free(free) = sysfs_root("%s", search),
	     *token = strstr(top, "/" IBNBD_EXPORT_TOKEN);
	bool done = false;

	if (token)
		*token = 0;
	if (token || !ibnbd_export_follows(search))
		done = offers_dir(w, *top ? top : "/", NULL, NULL, token ? 2 : 1, token != NULL);
	return done;
}

bool server_offers(const char *search, bool (*each)(const struct server_offer *o, void *arg),
		   void *arg)
{
	struct offers_walk w = { .each = each, .arg = arg };

	return offers_walk(&w, search);
}

char *server_offers_late(const char *search)
{
	char *late = NULL;
	struct offers_walk w = { .late = &late };

	offers_walk(&w, search);
	return late;
}

char *server_offers_search(const struct state *s)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS),
	     *search = sysfs_attr(dir, "dev_search_path");
	struct server_conf *c __free(server_conf_free) = NULL;

	if (search || !s->serverd)
		return search;
	c = server_conf_load(NULL);
	search = c->value[SERVER_dev_search_path];
	return search ? say_dup(search) : NULL;
}
