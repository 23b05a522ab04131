# SPDX-License-Identifier: GPL-2.0-only
description = ("a server is loaded anew, and loses its power, under nine writers: nothing that was "
               "promised is lost, with each unflushed= and each kind of export")
long = True
disk = 64
deadline = 240
import losses, time


def run(t):
    loss = losses.Loss(t, int(time.time()))
    loss.begin()
    loss.orderly("module reload", loss.reload)
    lost = loss.loses_power()
    t.ok(lost > 0, f"the disk forgets: with unflushed=ignore {lost} writes are lost")
