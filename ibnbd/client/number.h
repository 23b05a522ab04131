/* SPDX-License-Identifier: GPL-2.0-only */
/* The number of a disk, and the openers of the disk. */
#ifndef IBNBD_CLIENT_NUMBER_H
#define IBNBD_CLIENT_NUMBER_H

#include <linux/types.h>

struct ibnbd_clt_dev;
struct ibnbd_clt_number;

/* Module exit: waits until the last disk has been released. */
void ibnbd_clt_number_exit(void);

/**
 * ibnbd_clt_number_take() - give a device the lowest free number
 * @dev: gets dev->number and dev->index
 *
 * Return: 0 or a negative errno.
 */
int ibnbd_clt_number_take(struct ibnbd_clt_dev *dev);

/* References to the memory; they do not keep the number taken. */
struct ibnbd_clt_number *ibnbd_clt_number_get(struct ibnbd_clt_number *n);
void ibnbd_clt_number_put(struct ibnbd_clt_number *n);

/* The device. For the attributes of its disk: they are deleted before the device is. */
struct ibnbd_clt_dev *ibnbd_clt_number_dev(const struct ibnbd_clt_number *n);

/* Adds an opener: 0, or -ENXIO for a disk that is being removed. */
int ibnbd_clt_number_open(struct ibnbd_clt_number *n);
void ibnbd_clt_number_close(struct ibnbd_clt_number *n);
int ibnbd_clt_number_openers(const struct ibnbd_clt_number *n);
/*
 * True: the disk is not open, and cannot be opened from now on. False: it is open.
 */
bool ibnbd_clt_number_claim(struct ibnbd_clt_number *n);

/* For the removal only: the disk is deleted, and cannot be opened any more. */
void ibnbd_clt_number_leave(struct ibnbd_clt_number *n);
/* Frees the number: the disk was released, or there was none. */
void ibnbd_clt_number_free(struct ibnbd_clt_number *n);

/**
 * ibnbd_clt_number_settle() - wait until the number is free, and wake whatever waits for that
 * @n: of a disk that was deleted
 *
 * Bounded: an opener that has the disk open for a moment only (udev) gets a
 * second to close it. The number of a disk that stays open stays taken.
 */
void ibnbd_clt_number_settle(struct ibnbd_clt_number *n);
/*
 * Wait, killable, for ibnbd_clt_number_leave(), and for ibnbd_clt_number_settle(). Return: 0 or
 * -EINTR.
 */
int ibnbd_clt_number_wait_deleted(struct ibnbd_clt_number *n);
int ibnbd_clt_number_wait_settled(struct ibnbd_clt_number *n);

#endif
