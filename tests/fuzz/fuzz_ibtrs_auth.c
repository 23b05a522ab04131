// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both sides of authentication against a peer that has no key. The input is what it says: records
 * of a length byte and as many bytes, the first for the connection manager, the others messages.
 * Properties: neither side ever lets it in, whatever comes in whatever order, and a name that was
 * accepted is one. Without the key nothing but a broken hash could.
 */
#include <stdlib.h>
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "../unit/hmac.h"

#define REQUIRE(cond)                     \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct ibtrs_auth_ops ops = { .hmac = hmac_sha256,
					   .differ = hmac_differ,
					   .wipe = hmac_wipe };
static const struct ibtrs_keys keys = {
	.nr = 1, .key = { "a key that is not in the inputs", "and a random one beside it ...." }
};
static const u8 nonce[IBTRS_NONCE_LEN] = "nonce";

static void say_to_server(struct ibtrs_auth *s, const u8 *msg, size_t len)
{
	struct ibtrs_wire_auth_challenge challenge;
	const char *why = NULL;

	if (s->state == IBTRS_AUTH_NEW) {
		if (ibtrs_auth_srv_hello(s, msg, len, &why)) {
			REQUIRE(why && s->state == IBTRS_AUTH_FAILED);
			return;
		}
		REQUIRE(ibtrs_key_name_ok((char *)s->t.name, strlen((char *)s->t.name)));
		REQUIRE(!ibtrs_auth_srv_challenge(s, &ops, &keys, nonce, &challenge));
		return;
	}
	REQUIRE(ibtrs_auth_srv_proof(s, &ops, msg, len, &why) && why);
}

static void say_to_client(struct ibtrs_auth *c, const u8 *msg, size_t len)
{
	struct ibtrs_wire_auth_hello hello;
	struct ibtrs_wire_auth_proof proof;
	char text[IBTRS_WORDS_LEN];
	const char *why = NULL;

	if (c->state == IBTRS_AUTH_NEW) {
		REQUIRE(!ibtrs_auth_clt_hello(c, msg, len, nonce, &hello, &why) || why);
		return;
	}
	if (len & 1) {
		REQUIRE(ibtrs_auth_clt_verdict(c, msg, len, text) < 0);
		REQUIRE(strlen(text) < sizeof(text));
		return;
	}
	REQUIRE(ibtrs_auth_clt_challenge(c, &ops, msg, len, &proof, &why) && why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibtrs_wire_auth_req req;
	struct ibtrs_wire_auth_rsp rsp;
	struct ibtrs_auth_req m, again;
	struct ibtrs_auth c, s;
	const char *why = NULL;
	bool first = true;
	size_t len;
	u8 *msg;

	memset(&req, 0, sizeof(req));
	ibtrs_auth_rsp_encode(&rsp);
	ibtrs_auth_clt_init(&c, &req, "name", &keys);
	ibtrs_auth_srv_init(&s, &req, &rsp);
	while (size) {
		len = data[0] < size - 1 ? data[0] : size - 1;
		msg = malloc(len ?: 1);
		memcpy(msg, data + 1, len);
		data += len + 1;
		size -= len + 1;
		if (first && ibtrs_auth_req_decode(msg, len, &m, &why)) {
			REQUIRE(!(m.ext & ~IBTRS_EXT_WORDS));
			ibtrs_auth_req_encode(&req, &m);
			REQUIRE(ibtrs_auth_req_decode(&req, sizeof(req), &again, &why) &&
				!memcmp(&m, &again, sizeof(m)));
			ibtrs_auth_srv_init(&s, msg, &rsp);
		} else {
			say_to_server(&s, msg, len);
		}
		if (len >= sizeof(struct ibtrs_wire_conn_req))
			REQUIRE(!ibtrs_auth_req_good(&ops, keys.key[0], msg));
		say_to_client(&c, msg, len);
		REQUIRE(c.state != IBTRS_AUTH_IN && s.state != IBTRS_AUTH_IN);
		first = false;
		free(msg);
	}
	return 0;
}
