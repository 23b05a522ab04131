# SPDX-License-Identifier: GPL-2.0-only
description = ("planted: the kernel finds a race that we have a part in, and one of its own, "
               "which is forgiven")
vms = 1

# as kernel/kcsan writes it, in few lines, for the kernel takes ten in five seconds from user space
REPORT = ("BUG: KCSAN: data-race in {}",
          "write to 0xffff888003a1c0d8 of 8 bytes by task 31 on cpu 1:",
          " two+0x32/0x80 [ibtrs_client]", "=" * 66)
STOCK, OURS = ("rxe_completer [rdma_rxe] / rxe_requester [rdma_rxe]",
               "rxe_completer [rdma_rxe] / ibtrs_planted [ibtrs_client]")


def run(t):
    for title in OURS, STOCK:
        for line in REPORT:
            t.client.sh(f"echo '<4>{line.format(title)}' > /dev/kmsg")
