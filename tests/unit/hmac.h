/* SPDX-License-Identifier: GPL-2.0-only */
/* HMAC-SHA-256 for tests (RFC 2104, FIPS 180-4): what the kernel gives the drivers. */
#ifndef UNIT_HMAC_H
#define UNIT_HMAC_H

#include <ibtrs/pure.h>

static inline u32 sha_rot(u32 x, int n)
{
	return x >> n | x << (32 - n);
}

static inline void sha_block(u32 *h, const u8 *p)
{
	static const u32 k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
		0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
		0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
		0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
		0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
		0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
		0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
		0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
		0xc67178f2,
	};
	u32 w[64], v[8];
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (u32)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (sha_rot(w[i - 15], 7) ^ sha_rot(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (sha_rot(w[i - 2], 17) ^ sha_rot(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, h, sizeof(v));
	for (i = 0; i < 64; i++) {
		u32 a = v[7] + k[i] + w[i] + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
			(sha_rot(v[4], 6) ^ sha_rot(v[4], 11) ^ sha_rot(v[4], 25));
		u32 b = ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2])) +
			(sha_rot(v[0], 2) ^ sha_rot(v[0], 13) ^ sha_rot(v[0], 22));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += a;
		v[0] = a + b;
	}
	for (i = 0; i < 8; i++)
		h[i] += v[i];
}

/* @len: of both parts together below 1 KiB */
static inline void sha_256(const void *a, size_t alen, const void *b, size_t blen, u8 *out)
{
	u32 h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	size_t len = alen + blen, padded = (len + 9 + 63) / 64 * 64, i;
	u8 text[1152] = { 0 };

	memcpy(text, a, alen);
	memcpy(text + alen, b, blen);
	text[len] = 0x80;
	for (i = 0; i < 8; i++)
		text[padded - 1 - i] = (u64)len * 8 >> 8 * i;
	for (i = 0; i < padded; i += 64)
		sha_block(h, text + i);
	for (i = 0; i < 32; i++)
		out[i] = h[i / 4] >> 8 * (3 - i % 4);
}

static inline int hmac_sha256(const u8 *key, const void *data, size_t len, u8 *mac)
{
	u8 pad[64], inner[32];
	int i;

	for (i = 0; i < 64; i++)
		pad[i] = (i < 32 ? key[i] : 0) ^ 0x36;
	sha_256(pad, 64, data, len, inner);
	for (i = 0; i < 64; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha_256(pad, 64, inner, 32, mac);
	return 0;
}

static inline bool hmac_differ(const void *a, const void *b, size_t len)
{
	const u8 *x = a, *y = b;
	u8 diff = 0;

	/* not memcmp(): a fuzzer watches that, and learns the MAC from it */
	while (len--)
		diff |= *x++ ^ *y++;
	return diff;
}

static inline void hmac_wipe(void *data, size_t len)
{
	memset(data, 0, len);
}

#endif
