// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: threads for calls that may wait for a disk and that io_uring does not have. A disk that
 * does not answer keeps one of them per call. While all wait, another one is started for each call,
 * up to a limit; those beyond the first few end when they have nothing to do.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

struct serverd_jobs {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct serverd_job *todo;
	struct serverd_job **todo_end;
	struct serverd_job *ended;
	struct serverd_job **ended_end;
	int fd;
	u32 nr;			/* threads */
	u32 idle;		/* of them that have no call */
	u32 waiting;		/* calls that no thread has yet */
};

static void *job_worker(void *arg)
{
	struct serverd_jobs *j = arg;
	struct serverd_job *job;
	uint64_t one = 1;

	pthread_mutex_lock(&j->lock);
	while (j->todo || j->nr <= SERVERD_WORKERS) {
		if (!j->todo) {
			pthread_cond_wait(&j->some, &j->lock);
			continue;
		}
		job = j->todo;
		j->todo = job->next;
		if (!j->todo)
			j->todo_end = &j->todo;
		j->idle--;
		j->waiting--;
		pthread_mutex_unlock(&j->lock);
		job->run(job);
		job->next = NULL;
		pthread_mutex_lock(&j->lock);
		j->idle++;
		*j->ended_end = job;
		j->ended_end = &job->next;
		if (write(j->fd, &one, sizeof(one)) < 0)
			abort();	/* such a counter takes every write of 1 */
	}
	j->idle--;
	j->nr--;
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* Under the lock. Return: 0, or why there is not one more. */
static int job_thread(struct serverd_jobs *j)
{
	sigset_t all, old;
	pthread_t t;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&t, NULL, job_worker, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_detach(t);
	j->nr++;
	j->idle++;
	return 0;
}

int serverd_jobs_start(struct serverd *d)
{
	struct serverd_jobs *j = calloc(1, sizeof(*j));
	int err = 0;

	if (!j)
		return -ENOMEM;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->some, NULL);
	j->todo_end = &j->todo;
	j->ended_end = &j->ended;
	j->fd = d->jobs_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->jobs = j;
	if (j->fd < 0)
		return -errno;
	pthread_mutex_lock(&j->lock);
	while (!err && j->nr < SERVERD_WORKERS)
		err = job_thread(j);
	if (j->nr)		/* one is enough */
		err = 0;
	pthread_mutex_unlock(&j->lock);
	return err;
}

void serverd_job(struct serverd *d, struct serverd_job *job)
{
	struct serverd_jobs *j = d->jobs;

	job->next = NULL;
	pthread_mutex_lock(&j->lock);
	*j->todo_end = job;
	j->todo_end = &job->next;
	/* With as many as there may be, it waits for one of them. */
	if (++j->waiting > j->idle && j->nr < SERVERD_WORKERS_MAX)
		job_thread(j);
	pthread_cond_signal(&j->some);
	pthread_mutex_unlock(&j->lock);
}

void serverd_jobs_done(struct serverd *d)
{
	struct serverd_jobs *j = d->jobs;
	struct serverd_job *job, *next;
	uint64_t n;

	if (read(j->fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&j->lock);
	job = j->ended;
	j->ended = NULL;
	j->ended_end = &j->ended;
	pthread_mutex_unlock(&j->lock);
	for (; job; job = next) {
		next = job->next;
		job->done(d, job);
	}
}
