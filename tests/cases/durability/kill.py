# SPDX-License-Identifier: GPL-2.0-only
description = ("a server reboots in good order, is loaded anew, and loses its power three times or "
               "more, under nine writers: nothing that was promised is lost, with each unflushed= "
               "and each kind of export")
disk = 64
deadline = 400
ROUNDS = 3
import losses, time


def run(t):
    loss, lost, number = losses.Loss(t, int(time.time())), 0, 0
    # on a busy host little is unflushed when the power goes: then it goes more often
    while number < ROUNDS or (not lost and number < 3 * ROUNDS):
        loss.begin()
        if number == 0:
            loss.orderly("reboot in good order", loss.reboot)
            loss.orderly("module reload", loss.reload)
        lost += loss.loses_power()
        number += 1
    t.ok(lost > 0, f"the disk forgets: with unflushed=ignore {lost} writes are lost")
