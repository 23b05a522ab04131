// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-core: what client and server share. Nothing runs here by itself. The pure rooms (proto/,
 * logic/) know no modules, so their functions are exported from this file.
 */
#include <linux/module.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/dev.h"
#include "ibtrs/core/fault.h"
#include "ibtrs/core/key.h"
#include "ibtrs/logic/auth.h"
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/logic/fence.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include <ibtrs/addr.h>
#include <ibtrs/version.h>

EXPORT_SYMBOL_GPL(ibtrs_addr_parse);
EXPORT_SYMBOL_GPL(ibtrs_addr_pair_parse);
EXPORT_SYMBOL_GPL(ibtrs_addr_format);
EXPORT_SYMBOL_GPL(ibtrs_addr_pair_format);
EXPORT_SYMBOL_GPL(ibtrs_addr_equal);

EXPORT_SYMBOL_GPL(ibtrs_auth_end);
EXPORT_SYMBOL_GPL(ibtrs_auth_clt_init);
EXPORT_SYMBOL_GPL(ibtrs_auth_clt_hello);
EXPORT_SYMBOL_GPL(ibtrs_auth_clt_challenge);
EXPORT_SYMBOL_GPL(ibtrs_auth_clt_verdict);
EXPORT_SYMBOL_GPL(ibtrs_auth_srv_init);
EXPORT_SYMBOL_GPL(ibtrs_auth_srv_hello);
EXPORT_SYMBOL_GPL(ibtrs_auth_srv_challenge);
EXPORT_SYMBOL_GPL(ibtrs_auth_srv_proof);
EXPORT_SYMBOL_GPL(ibtrs_auth_has_mark);
EXPORT_SYMBOL_GPL(ibtrs_auth_req_sign);
EXPORT_SYMBOL_GPL(ibtrs_auth_req_good);
EXPORT_SYMBOL_GPL(ibtrs_auth_rsp_sign);
EXPORT_SYMBOL_GPL(ibtrs_auth_rsp_good);
EXPORT_SYMBOL_GPL(ibtrs_auth_identity);
EXPORT_SYMBOL_GPL(ibtrs_auth_req_is);
EXPORT_SYMBOL_GPL(ibtrs_auth_req_encode);
EXPORT_SYMBOL_GPL(ibtrs_auth_req_decode);
EXPORT_SYMBOL_GPL(ibtrs_auth_rsp_encode);
EXPORT_SYMBOL_GPL(ibtrs_auth_proof_encode);
EXPORT_SYMBOL_GPL(ibtrs_auth_verdict_is);

EXPORT_SYMBOL_GPL(ibtrs_grant_check);
EXPORT_SYMBOL_GPL(ibtrs_chunkmap_build);
EXPORT_SYMBOL_GPL(ibtrs_chunkmap_mr_count);

EXPORT_SYMBOL_GPL(ibtrs_fence_arrive);
EXPORT_SYMBOL_GPL(ibtrs_fence_end);
EXPORT_SYMBOL_GPL(ibtrs_fence_behind);
EXPORT_SYMBOL_GPL(ibtrs_fence_catch_up);

EXPORT_SYMBOL_GPL(ibtrs_msg_conn_req_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_conn_req_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_conn_rsp_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_conn_rsp_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_conn_refused_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_conn_refused_words);
EXPORT_SYMBOL_GPL(ibtrs_msg_verdict_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_info_refused_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_info_req_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_info_req_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_name_check);
EXPORT_SYMBOL_GPL(ibtrs_msg_info_rsp_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_info_rsp_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_desc_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_write_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_read_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_io_decode);
EXPORT_SYMBOL_GPL(ibtrs_msg_rkey_encode);
EXPORT_SYMBOL_GPL(ibtrs_msg_rkey_decode);
EXPORT_SYMBOL_GPL(ibtrs_trial_encode);
EXPORT_SYMBOL_GPL(ibtrs_trial_decode);

EXPORT_SYMBOL_GPL(ibtrs_dev_get);
EXPORT_SYMBOL_GPL(ibtrs_dev_put);
EXPORT_SYMBOL_GPL(ibtrs_dev_alloc_exact);
EXPORT_SYMBOL_GPL(ibtrs_iu_init);
EXPORT_SYMBOL_GPL(ibtrs_iu_free);
EXPORT_SYMBOL_GPL(ibtrs_iu_sync_cpu);
EXPORT_SYMBOL_GPL(ibtrs_iu_sync_dev);
EXPORT_SYMBOL_GPL(ibtrs_iu_post_recv);
EXPORT_SYMBOL_GPL(ibtrs_iu_send);

static int __init ibtrs_core_init(void)
{
	int err = ibtrs_key_init();

	if (err)
		return err;
	ibtrs_fault_init();
	return 0;
}

static void __exit ibtrs_core_exit(void)
{
	ibtrs_fault_exit();
	ibtrs_key_exit();
}

module_init(ibtrs_core_init);
module_exit(ibtrs_core_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, common part");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
