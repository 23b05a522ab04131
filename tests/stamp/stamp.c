// SPDX-License-Identifier: GPL-2.0-only
/*
 * stamp: writes blocks that say what they are, and tells somebody else about each of them.
 *
 *   stamp run DEV LOG [key=value ..]	writers and readers until SIGTERM; LOG.0, LOG.1 .. get a log
 *					for each thread
 *   stamp one DEV LOG WRITER SEQ BLOCK COUNT	a single write of COUNT blocks, which are then read
 *						back
 *   stamp scan DEV COUNT OUT		what stands in the first COUNT blocks, a line for each
 *   stamp watch OUT FILE ..		the first line of small files, each time that it changes
 *
 * A block has 4096 bytes: {magic, own block number, writer, boot, sequence, CRC} and a pattern that
 * follows from them. Logs lie where neither client nor server can lose them, which is for the
 * caller to choose (a 9p directory of the host); a line is there before the write it announces is
 * issued. check.py proves from logs and scan that no acknowledged write was lost, no older one came
 * back, none went elsewhere.
 *
 * Each thread owns every n-th extent of 32 blocks and has one I/O under way, so that the writes of
 * a block have an order without any locks. Half of the I/O returns to where the last one was: a
 * late copy of an older write has something to destroy.
 *
 * Log lines (times are milliseconds since boot):
 *   H WRITER BOOT THREAD			head
 *   I SEQ BLOCK COUNT TIME			about to be written
 *   A SEQ TIME MS, E SEQ ERRNO TIME MS	acknowledged, failed, after MS milliseconds. It reaches the
 *					log together with the next I or R
 *   R BLOCK COUNT TIME MS SEQ ..		read, and what stood in each block (0: nothing of
 *						this writer)
 *   r ERRNO TIME MS			a read failed
 *   F SENT TIME MS, f ERRNO TIME MS	a flush that was sent then was answered, or has failed
 *   V KIND BLOCK WRITER SEQ ACKED LAST	read and found wrong: LOST, MISPLACED or CORRUPT; what stood
 *					there; what should
 *   X					end in good order
 *
 * Exit status: 0 no error and nothing wrong; 1 errors; 3 something found wrong; 2 could not begin.
 *
 * mutant=drop|replay|swap makes `run` a liar, to show that the checker finds it: drop acknowledges
 * a write that it never made, replay writes an old block again, swap puts two blocks into each
 * other's place. They do it once, in the middle of the run, where no later write of the run repairs
 * it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	4096
#define EXTENT	32		/* blocks; the largest I/O */
#define MAGIC	0x31706d6174736269ull
#define LOG_ROOM 1024

struct stamp {
	uint64_t magic, block, seq;
	uint32_t writer, boot;
	uint32_t crc;		/* of the whole block with 0 here */
	uint32_t zero;
	uint64_t pattern[];
};

struct thread {
	pthread_t id;
	unsigned int nr;
	int log;
	char text[LOG_ROOM];
	size_t len;
	uint64_t rnd;
	uint8_t *buf;
	unsigned long extent;
};

enum mutant { HONEST, DROP, REPLAY, SWAP };

static _Thread_local int fd;
static const char *disk;
static uint32_t writer, boot_id;
static unsigned int threads = 4, max_blocks = 2, flush_every, think_us, reads = 30, seed = 1;
static unsigned int ms_limit, closes;
static unsigned long blocks = 1024, only = -1ul;
static enum mutant mutant;
static atomic_bool stop, lied;
static atomic_ulong seq = 0, done, errs, wrong;
/* for each block, touched by its owner alone; older: acknowledged before */
static uint64_t *acked, *older, *newest;
static uint32_t crc_table[256];

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* ---- blocks ------------------------------------------------------------- */

static void crc_init(void)
{
	uint32_t i, j, c;

	for (i = 0; i < 256; i++) {
		for (c = i, j = 0; j < 8; j++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
		crc_table[i] = c;
	}
}

static uint32_t crc32c(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t c = ~0u;

	while (len--)
		c = crc_table[(c ^ *p++) & 0xff] ^ c >> 8;
	return ~c;
}

static void make_block(void *at, uint64_t block, uint64_t number)
{
	struct stamp *s = at;
	uint64_t x = (block + 1) * 0x9e3779b97f4a7c15ull ^ number << 20 ^ writer;
	size_t i;

	*s = (struct stamp){ .magic = MAGIC, .block = block, .seq = number, .writer = writer,
			     .boot = boot_id };
	x |= 1;
	for (i = 0; i < (BLOCK - sizeof(*s)) / 8; i++)
		s->pattern[i] = next_random(&x);
	s->crc = crc32c(s, BLOCK);
}

static bool all_zero(const uint8_t *p)
{
	return !p[0] && !memcmp(p, p + 1, BLOCK - 1);
}

static bool whole(void *at)
{
	struct stamp *s = at;
	uint32_t crc = s->crc;
	bool ok;

	if (s->magic != MAGIC)
		return false;
	s->crc = 0;
	ok = crc32c(s, BLOCK) == crc;
	s->crc = crc;
	return ok;
}

/* ---- logs --------------------------------------------------------------- */

static void note(struct thread *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	t->len += vsnprintf(t->text + t->len, LOG_ROOM - t->len, format, args);
	va_end(args);
	if (t->len >= LOG_ROOM)
		abort();
}

static void flush_log(struct thread *t)
{
	if (t->len && write(t->log, t->text, t->len) != (ssize_t)t->len) {
		perror("stamp: log");
		_exit(2);
	}
	t->len = 0;
}

static void open_log(struct thread *t, const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s.%u", path, t->nr);
	t->log = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (t->log < 0) {
		perror(name);
		exit(2);
	}
	note(t, "H %u %u %u\n", writer, boot_id, t->nr);
	flush_log(t);
}

/* ---- I/O ---------------------------------------------------------------- */

static int open_disk(const char *path, int flags)
{
	int f = open(path, flags | O_DIRECT | O_CLOEXEC);

	if (f < 0 && errno == EINVAL)		/* a file system without direct I/O */
		f = open(path, flags | O_CLOEXEC);
	if (f < 0) {
		perror(path);
		exit(2);
	}
	return f;
}

static ssize_t honest_write(struct thread *t, unsigned long block, unsigned int count)
{
	return pwrite(fd, t->buf, (size_t)count * BLOCK, (off_t)block * BLOCK);
}

static void lie_at(unsigned long block, uint64_t number, unsigned long place)
{
	static uint8_t other[BLOCK] __attribute__((aligned(BLOCK)));

	make_block(other, block, number);
	if (pwrite(fd, other, BLOCK, (off_t)place * BLOCK) != BLOCK)
		perror("stamp: mutant");
	lied = true;
	only = place;
}

/* What a mutant does with a write of one block that has been written before. */
static ssize_t lying_write(struct thread *t, unsigned long block, unsigned int count,
			   uint64_t number)
{
	ssize_t got;

	if (lied || count != 1 || !acked[block] || number < 200)
		return honest_write(t, block, count);
	if (mutant == DROP) {
		lied = true;
		only = block;
		return BLOCK;
	}
	got = honest_write(t, block, count);
	if (mutant == SWAP && acked[block ^ 1]) {
		lie_at(block ^ 1, acked[block ^ 1], block);
		lie_at(block, number, block ^ 1);
	}
	return got;
}

/* What it does after somebody has read the newest content. */
static void lie_after_read(unsigned long block)
{
	if (mutant == REPLAY && !lied && older[block] && seq > 200)
		lie_at(block, older[block], block);
}

/* closes=1: nobody has the disk open for a moment, which an administrator may need. */
static void failed(void)
{
	errs++;
	if (closes)
		close(fd);
	usleep(closes ? 100000 : 20000);
	if (closes)
		fd = open_disk(disk, O_RDWR);
}

static void do_write(struct thread *t, unsigned long block, unsigned int count)
{
	uint64_t number = ++seq, t0;
	unsigned int i;
	ssize_t got;
	int err;

	for (i = 0; i < count; i++)
		make_block(t->buf + i * BLOCK, block + i, number);
	t0 = now_ms();
	note(t, "I %lu %lu %u %lu\n", number, block, count, t0);
	flush_log(t);
	for (i = 0; i < count; i++)
		newest[block + i] = number;
	got = mutant ? lying_write(t, block, count, number) : honest_write(t, block, count);
	err = got < 0 ? errno : EIO;
	if (got != (ssize_t)count * BLOCK) {
		note(t, "E %lu %d %lu %lu\n", number, err, now_ms(), now_ms() - t0);
		failed();
		return;
	}
	done++;
	for (i = 0; i < count; i++) {
		older[block + i] = acked[block + i];
		acked[block + i] = number;
	}
	note(t, "A %lu %lu %lu\n", number, now_ms(), now_ms() - t0);
}

/* Each flush=N operations. It covers what was acknowledged before it was sent, to whomever. */
static void do_flush(struct thread *t)
{
	uint64_t t0 = now_ms();

	flush_log(t);
	if (fdatasync(fd)) {
		int err = errno;

		note(t, "f %d %lu %lu\n", err, now_ms(), now_ms() - t0);
		failed();
		return;
	}
	note(t, "F %lu %lu %lu\n", t0, now_ms(), now_ms() - t0);
	flush_log(t);
}

static void look(struct thread *t, unsigned long block, void *at)
{
	struct stamp *s = at;
	const char *kind = NULL;

	if (all_zero(at)) {
		if (!acked[block])
			return;
		kind = "LOST";
		*s = (struct stamp){ .block = block };
	} else if (!whole(at)) {
		kind = "CORRUPT";
	} else if (s->block != block) {
		kind = "MISPLACED";
	} else if (s->writer != writer) {
		kind = acked[block] ? "LOST" : NULL;
	} else if (s->seq < acked[block]) {
		kind = "LOST";
	} else if (s->seq > newest[block] || s->boot != boot_id) {
		kind = "CORRUPT";
	}
	if (!kind)
		return;
	wrong++;
	note(t, "V %s %lu %u %lu %lu %lu\n", kind, block, s->writer, s->seq, acked[block],
	     newest[block]);
	printf("%lu V %s block %lu has writer %u seq %lu block %lu, acknowledged %lu, newest %lu\n",
	       now_ms(), kind, block, s->writer, s->seq, s->block, acked[block], newest[block]);
}

static void do_read(struct thread *t, unsigned long block, unsigned int count)
{
	uint64_t t0 = now_ms();
	unsigned int i;
	ssize_t got;
	int err;

	flush_log(t);
	got = pread(fd, t->buf, (size_t)count * BLOCK, (off_t)block * BLOCK);
	err = got < 0 ? errno : EIO;
	if (got != (ssize_t)count * BLOCK) {
		note(t, "r %d %lu %lu\n", err, now_ms(), now_ms() - t0);
		failed();
		return;
	}
	done++;
	note(t, "R %lu %u %lu %lu", block, count, now_ms(), now_ms() - t0);
	for (i = 0; i < count; i++) {
		struct stamp *s = (void *)(t->buf + i * BLOCK);

		note(t, " %lu", s->magic == MAGIC && s->writer == writer ? s->seq : 0);
	}
	note(t, "\n");
	for (i = 0; i < count; i++) {
		look(t, block + i, t->buf + i * BLOCK);
		if (t->len > LOG_ROOM / 2)
			flush_log(t);
	}
	if (mutant)
		lie_after_read(block);
}

/*
 * A lie must not be repaired by a later write of the same run, nor shown by a
 * read of it: the checker alone shall find it.
 */
static bool keep_off(unsigned long block, unsigned int count)
{
	return mutant && lied && only != -1ul && (block ^ only) < EXTENT &&
	       block / EXTENT == only / EXTENT;
}

static void *work(void *arg)
{
	struct thread *t = arg;
	unsigned long extents = blocks / EXTENT,
		own = (extents - t->nr + threads - 1) / threads, first;
	unsigned int count, since_flush = 0;

	fd = open_disk(disk, O_RDWR);
	while (!stop) {
		if (next_random(&t->rnd) & 1)
			t->extent = next_random(&t->rnd) % own * threads + t->nr;
		count = 1 + next_random(&t->rnd) % max_blocks;
		/* few places in an extent, so that they are written again and again */
		first = t->extent * EXTENT +
			next_random(&t->rnd) % (EXTENT - count + 1) / max_blocks * max_blocks;
		if (keep_off(first, count))
			continue;
		if (next_random(&t->rnd) % 100 < reads)
			do_read(t, first, count);
		else
			do_write(t, first, count);
		if (flush_every && ++since_flush == flush_every) {
			do_flush(t);
			since_flush = 0;
		}
		if (think_us)
			usleep(think_us / 2 + next_random(&t->rnd) % (think_us + 1));
	}
	note(t, "X\n");
	flush_log(t);
	return NULL;
}

/* ---- commands ----------------------------------------------------------- */

static void end(int sig)
{
	stop = true;
}

static uint32_t this_boot(void)
{
	char line[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return crc32c(line, strlen(line));
}

static void *pages(size_t count)
{
	void *p;

	if (posix_memalign(&p, BLOCK, count * BLOCK))
		exit(2);
	memset(p, 0, count * BLOCK);
	return p;
}

static void tables(unsigned long count)
{
	acked = calloc(count, sizeof(*acked));
	older = calloc(count, sizeof(*older));
	newest = calloc(count, sizeof(*newest));
	if (!acked || !older || !newest)
		exit(2);
}

static int option(const char *word)
{
	static const struct { const char *key; unsigned int *value; } keys[] = {
		{ "threads", &threads }, { "max", &max_blocks },
		{ "think_us", &think_us }, { "reads", &reads },
		{ "seed", &seed }, { "flush", &flush_every },
		{ "writer", &writer }, { "ms", &ms_limit },
		{ "closes", &closes },
	};
	static const char * const mutants[] = { "none", "drop", "replay", "swap" };
	const char *value = strchr(word, '=');
	size_t i, len = value ? value++ - word : 0;

	for (i = 0; value && i < sizeof(keys) / sizeof(*keys); i++)
		if (strlen(keys[i].key) == len && !strncmp(word, keys[i].key, len))
			return *keys[i].value = strtoul(value, NULL, 0), 0;
	if (value && !strncmp(word, "blocks=", 7))
		return blocks = strtoul(value, NULL, 0), 0;
	for (i = 0; value && !strncmp(word, "mutant=", 7) && i < 4; i++)
		if (!strcmp(value, mutants[i]))
			return mutant = i, 0;
	fprintf(stderr, "stamp: what is '%s'?\n", word);
	return -1;
}

static int cmd_run(int argc, char **argv)
{
	struct thread *t;
	unsigned long d, last = 0;
	unsigned int i;
	uint64_t t0;

	writer = 1;
	for (i = 2; i < (unsigned int)argc; i++)
		if (option(argv[i]))
			return 2;
	if (!threads || !max_blocks || max_blocks > EXTENT || blocks / EXTENT < threads || !writer)
		return fprintf(stderr,
			       "stamp: at least %d blocks for each thread, max=1..%d, writer=1..\n",
			       EXTENT, EXTENT), 2;
	disk = argv[0];
	boot_id = this_boot();
	tables(blocks);
	t = calloc(threads, sizeof(*t));
	if (!t)
		return perror("stamp"), 2;
	signal(SIGTERM, end);
	signal(SIGINT, end);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < threads; i++) {
		t[i].nr = i;
		t[i].rnd = (seed * 2654435761ull + i) * 0x9e3779b97f4a7c15ull | 1;
		t[i].extent = i;
		t[i].buf = pages(EXTENT);
		open_log(&t[i], argv[1]);
	}
	t0 = now_ms();
	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i].id, NULL, work, &t[i]))
			return perror("pthread_create"), 2;
	printf("%lu BEGIN writer %u seed %u\n", t0, writer, seed);
	while (!stop) {
		usleep(100000);
		if (ms_limit && now_ms() - t0 > ms_limit)
			stop = true;
		d = done;
		if (d - last >= 1000)
			printf("%lu done %lu errors %lu\n", now_ms(), d, (unsigned long)errs),
			last = d;
	}
	/*
	 * A thread may wait in the kernel for ever. Its write stays announced and unanswered, and
	 * that is what the log has to say.
	 */
	for (i = 0; i < threads; i++) {
		struct timespec limit;

		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += i ? 1 : 5;
		if (pthread_timedjoin_np(t[i].id, NULL, &limit))
			printf("%lu thread %u hangs\n", now_ms(), i);
	}
	printf("%lu END done=%lu errs=%lu wrong=%lu\n", now_ms(), (unsigned long)done,
	       (unsigned long)errs, (unsigned long)wrong);
	fflush(stdout);
	_exit(wrong ? 3 : errs ? 1 : mutant && !lied ? 2 : 0);
}

static int cmd_one(int argc, char **argv)
{
	struct thread t = { .nr = 0 };
	unsigned long block, count;

	if (argc != 6)
		return 2;
	writer = strtoul(argv[2], NULL, 0);
	t.nr = seq = strtoul(argv[3], NULL, 0);
	seq--;
	block = strtoul(argv[4], NULL, 0);
	count = strtoul(argv[5], NULL, 0);
	if (!writer || !count || count > EXTENT)
		return 2;
	fd = open_disk(argv[0], O_RDWR);
	boot_id = this_boot();
	tables(block + count);
	t.buf = pages(EXTENT);
	open_log(&t, argv[1]);
	do_write(&t, block, count);
	do_read(&t, block, count);
	note(&t, "X\n");
	flush_log(&t);
	return wrong ? 3 : errs ? 1 : 0;
}

static int cmd_scan(int argc, char **argv)
{
	unsigned long count, b;
	uint8_t *buf = pages(EXTENT);
	FILE *out;

	if (argc != 3)
		return 2;
	count = strtoul(argv[1], NULL, 0);
	fd = open_disk(argv[0], O_RDONLY);
	out = fopen(argv[2], "w");
	if (!out)
		return perror(argv[2]), 2;
	for (b = 0; b < count; b++) {
		struct stamp *s = (void *)(buf + b % EXTENT * BLOCK);
		ssize_t got;

		if (b % EXTENT == 0) {
			got = pread(fd, buf, EXTENT * BLOCK, (off_t)b * BLOCK);
			if (got != EXTENT * BLOCK)
				return fprintf(stderr, "%s: block %lu: %s\n", argv[0], b,
					       got < 0 ? strerror(errno) : "short read"), 2;
		}
		if (all_zero((void *)s))
			fprintf(out, "%lu zero\n", b);
		else if (!whole(s))
			fprintf(out, "%lu bad\n", b);
		else
			fprintf(out, "%lu is %lu %u %u %lu\n", b, s->block, s->writer,
				s->boot, s->seq);
	}
	return fclose(out) ? 2 : 0;
}

static int cmd_watch(int argc, char **argv)
{
	char (*seen)[64] = calloc(argc, sizeof(*seen)), line[64];
	int out = open(argv[0], O_WRONLY | O_CREAT | O_TRUNC, 0644), i, f;
	uint64_t beat = 0;
	off_t at = 0;

	if (out < 0 || !seen)
		return perror(argv[0]), 2;
	for (;; usleep(15000)) {
		char text[4096];
		int len = 0;

		for (i = 1; i < argc; i++) {
			memset(line, 0, sizeof(line));
			f = open(argv[i], O_RDONLY);
			if (f < 0 || read(f, line, sizeof(line) - 1) <= 0)
				strcpy(line, "gone");
			if (f >= 0)
				close(f);
			line[strcspn(line, "\n")] = 0;
			if (!strcmp(line, seen[i]) || len > 3900)
				continue;
			strcpy(seen[i], line);
			len += sprintf(text + len, "%lu %d %s\n", now_ms(), i - 1, line);
		}
		if (!len && now_ms() - beat >= 200)
			len = sprintf(text, "%lu\n", now_ms());
		if (!len)
			continue;
		beat = now_ms();
		if (pwrite(out, text, len, at) != len)
			return perror(argv[0]), 2;
		at += len;
	}
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";

	crc_init();
	if (!strcmp(verb, "run") && argc > 3)
		return cmd_run(argc - 2, argv + 2);
	if (!strcmp(verb, "one"))
		return cmd_one(argc - 2, argv + 2);
	if (!strcmp(verb, "scan"))
		return cmd_scan(argc - 2, argv + 2);
	if (!strcmp(verb, "watch"))
		return cmd_watch(argc - 2, argv + 2);
	fprintf(stderr,
		"usage: stamp run DEV LOG [key=value ..] | one DEV LOG WRITER SEQ BLOCK COUNT | "
		"scan DEV COUNT OUT | watch OUT FILE ..\n");
	return 2;
}
