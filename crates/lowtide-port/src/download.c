// SPDX-License-Identifier: MIT OR Apache-2.0
/* Laws at the receiver (law/download.h) as ordinary functions, for the simulator's receiver. */
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#include "laws.h"
#include "download.h"

u64 lowtide_download_size(void)
{
	return sizeof(struct lt_download);
}

u64 lowtide_download_flow_size(void)
{
	return sizeof(struct lt_download_flow);
}

/* `number`: the place of the law in the table of laws. */
void lowtide_download_flow_begin(struct lt_download_flow *f, u64 number)
{
	f->number = number;
}

void lowtide_download_begin(struct lt_download *d, u64 number)
{
	d->number = number;
}

void lowtide_download_arrives(struct lt_download_flow *f, struct lt_download *d, const struct segment *s, const void *p,
			      u64 weight_q16, u32 random)
{
	download_arrives(f, d, s, p, weight_q16, false, random);
}

/* 0: nothing has answered a grant so far. */
u32 lowtide_download_clamp(const struct lt_download_flow *f, const struct lt_download *d, u64 now_us, u32 held)
{
	return d->begun ? download_clamp(f, d, now_us, held, false) : 0;
}

void lowtide_download_leaves(struct lt_download *d, u64 now_us, u32 tsval, u32 edge, u32 nxt)
{
	download_leaves(d, now_us, tsval, edge, nxt);
}

void lowtide_download_leave(struct lt_download_flow *f, struct lt_download *d)
{
	download_leave(f, d);
}
