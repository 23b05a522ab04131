// SPDX-License-Identifier: GPL-2.0-only
/*
 * disksrv ADDRESS FILE [WORD..]: the server of disksrv.h as a program, for tests of the plugin for
 * nbdkit. The disk is FILE, and survives a kill. It says "ready" when it listens, and after SIGTERM
 * what it has executed.
 *
 *	other-id, other-epoch	what it says of the disk
 *	no-zeroes, no-discard, no-fua
 *	read-only
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "disksrv.h"

static void word(struct disksrv *s, const char *w)
{
	if (!strcmp(w, "other-id"))
		s->rsp.identity.id[0] ^= 1;
	else if (!strcmp(w, "other-epoch"))
		s->rsp.durability.cache_epoch++;
	else if (!strcmp(w, "no-zeroes"))
		s->rsp.max_write_zeroes_sectors = 0;
	else if (!strcmp(w, "no-discard"))
		s->rsp.max_discard_sectors = 0;
	else if (!strcmp(w, "no-fua"))
		s->rsp.fua = false;
	else if (!strcmp(w, "read-only"))
		s->rsp.identity.flags |= IBNBD_ID_F_READ_ONLY;
	else
		exit(2);
}

int main(int argc, char **argv)
{
	static struct disksrv s;
	char why[IBTRS_WHY_LEN] = "";
	struct stat st;
	sigset_t term;
	int fd, i;

	if (argc < 3)
		return 2;
	fd = open(argv[2], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[2]);
		return 1;
	}
	disksrv_init(&s, (u64)st.st_size / DISKSRV_BLOCK);
	free(s.disk);
	s.disk = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s.disk == MAP_FAILED) {
		perror(argv[2]);
		return 1;
	}
	s.next_id = (u32)getpid();	/* no number is given twice */
	for (i = 3; i < argc; i++)
		word(&s, argv[i]);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	disksrv_up(&s);
	if (ibtrs_srv_listen(s.srv, argv[1], why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	sigwait(&term, &i);
	disksrv_down(&s);
	printf("reads %u writes %u fuas %u flushes %u discards %u zeroes %u\n", s.reads, s.writes,
	       s.fuas, s.flushes, s.discards, s.zeroes);
	return 0;
}
