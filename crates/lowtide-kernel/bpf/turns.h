/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections of one transfer that go the same way fill it in turns. Many that each hold a queue take each other's for somebody else's, and their
 * probes add up to more than one flow's.
 *
 * One holds the turn: it is the transfer's one flow on that path. The others wait, with a segment now and then. One of them is next. When the
 * turn is over it takes what the holder has learned and its window, and holds the turn from the moment when its first packet leaves: what the one
 * before has in flight drains meanwhile, so that the link notices nothing. Who has less to send than the window lets it needs no turn.
 */
#ifndef LOWTIDE_TURNS_H
#define LOWTIDE_TURNS_H

#include "paths.h"

#define TURN_ROUND_TRIPS 16
#define TURN_LEAST_NS 500000000ULL
#define TURN_UNUSED_ROUND_TRIPS 4	/* without being held back by its window, and the holder gives the turn up */
#define TURN_CLAIM_NS NSEC_PER_SEC	/* what is claimed and not taken up for so long is nobody's */
#define TURN_SILENCE_S 2		/* a server may give up a connection that brings less than 500 bytes per second */
#define TURN_WORDS (sizeof(struct tide) / sizeof(u64))

struct lt_turn {
	u64 holder, next;	/* numbers of sockets; 0: nobody */
	u64 began_ns;
	u64 until_ns;		/* without a sign of the holder's it has gone */
	u64 next_until_ns;	/* the same of the next */
	u64 next_held_ns;	/* when that one held the turn last */
	u64 taught_ns;		/* when `tide` was written; 0: never */
	struct bpf_spin_lock lock;	/* for that */
	u32 unused;
	u64 tide[TURN_WORDS];	/* what the holder knows: a struct tide */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LT_PATHS);
	__type(key, struct lt_path);
	__type(value, struct lt_turn);
} turns SEC(".maps");

static const u64 nobodys_turn[sizeof(struct lt_turn) / sizeof(u64)];

/* What the decision goes by, at an ACK. */
struct turn_view {
	u64 now_ns, srtt_ns;
	u32 mss;
	u32 una, nxt;
	u32 limited;	/* its window held it back */
	u32 unsent;	/* it has more to send */
};

static inline void turn_begin(struct lt_socket *s, const struct sock_common *sk)
{
	__builtin_memset(&s->turn, 0, sizeof(s->turn));
	if (settings.whole_machine || !path_of(sk, &s->turn.path))
		return;
	s->turn.number = __sync_fetch_and_add(&group.numbers, 1) + 1;
	/* where there is no room for one more path there are no turns */
	bpf_map_update_elem(&turns, &s->turn.path, nobodys_turn, BPF_NOEXIST);
}

/* Probes of one that holds the turn are a second apart at the most. */
static inline u64 turn_patience_ns(const struct lt_socket *s, u64 srtt_ns)
{
	return 4 * srtt_ns + (s->tide.listens && !s->turn.waits ? 2 * NSEC_PER_SEC : NSEC_PER_SEC / 20);
}

static __noinline int turn_teach(const struct lt_socket *s, struct lt_turn *t)
{
	const u64 *from = (const u64 *)&s->tide;

	bpf_spin_lock(&t->lock);
	for (u32 i = 0; i < TURN_WORDS; i++)
		t->tide[i] = from[i];
	bpf_spin_unlock(&t->lock);
	return 0;
}

/* All that the holder knows and does, but for what is this connection's own: its least round trip, and where its rounds end. */
static __noinline int turn_learn(struct lt_socket *s, struct lt_turn *t, u32 nxt)
{
	struct tide_extreme base = s->tide.path.base;
	u64 *to = (u64 *)&s->tide;

	if (!t->taught_ns)
		return 0;
	bpf_spin_lock(&t->lock);
	for (u32 i = 0; i < TURN_WORDS; i++)
		to[i] = t->tide[i];
	bpf_spin_unlock(&t->lock);
	tide_go_on(&s->tide, &base, nxt);
	return 0;
}

static inline bool turn_passes(u64 *place, u64 from, u64 to)
{
	return __sync_val_compare_and_swap(place, from, to) == from;
}

static inline void turn_held_from(struct lt_socket *s, struct lt_turn *t, u64 now_ns, u64 srtt_ns)
{
	t->began_ns = s->turn.limited_ns = s->turn.held_ns = s->turn.taken_ns = now_ns;
	s->turn.waits = s->turn.next = 0;
	t->until_ns = now_ns + turn_patience_ns(s, srtt_ns);
}

static inline void turn_hold(struct lt_socket *s, struct lt_turn *t, const struct turn_view *v)
{
	t->until_ns = v->now_ns + turn_patience_ns(s, v->srtt_ns);
	s->turn.held_ns = v->now_ns;
	if (v->limited || (s->tide.listens && v->unsent))
		s->turn.limited_ns = v->now_ns;
	if (v->now_ns - s->turn.limited_ns > TURN_UNUSED_ROUND_TRIPS * v->srtt_ns + NSEC_PER_SEC / 20) {
		turn_passes(&t->holder, s->turn.number, 0);
		return;
	}
	if (v->now_ns - t->taught_ns < v->srtt_ns)
		return;
	turn_teach(s, t);
	t->taught_ns = v->now_ns;
}

/* It waits, and may come next. True: it has waited long enough. */
static inline bool turn_comes(struct lt_socket *s, struct lt_turn *t, const struct turn_view *v)
{
	u64 next = t->next, length = at_least(TURN_ROUND_TRIPS * v->srtt_ns, TURN_LEAST_NS), gap_ns;

	/* one that waits already may not send soon */
	if (!s->turn.waits && turn_passes(&t->holder, 0, s->turn.number)) {
		turn_learn(s, t, v->nxt);
		turn_held_from(s, t, v->now_ns, v->srtt_ns);
		return true;
	}
	s->turn.waits = 1;
	/* whoever has waited for longest */
	if (next != s->turn.number && (!next || v->now_ns > t->next_until_ns || s->turn.held_ns < t->next_held_ns) &&
	    turn_passes(&t->next, next, s->turn.number)) {
		t->next_held_ns = s->turn.held_ns;
		next = s->turn.number;
	}
	if (next == s->turn.number && !s->turn.next)
		s->turn.next_from = v->nxt;
	s->turn.next = next == s->turn.number;
	if (!s->turn.next)
		return false;
	/* it may not send again before */
	gap_ns = 2 * v->mss * NSEC_PER_SEC / at_least(s->pacing, 1);
	t->next_until_ns = v->now_ns + turn_patience_ns(s, v->srtt_ns) + gap_ns;
	/* what was sent as the next has arrived: so it may soon send again */
	if (!seq_after(v->una, s->turn.next_from) || (t->holder && v->now_ns < t->until_ns && v->now_ns - t->began_ns < length))
		return false;
	t->next_held_ns = 0;
	turn_learn(s, t, v->nxt);
	s->turn.claims = 1;	/* from its first packet on */
	s->turn.taken_ns = v->now_ns;
	s->turn.waits = 0;
	return true;
}

/* Whether it has to wait. */
static __noinline int turn_waits(struct lt_socket *s, const struct turn_view *v)
{
	struct lt_turn *t;

	if (s->decision.governed)
		return s->turn.waits = 0;
	if (s->turn.claims && v->now_ns - s->turn.taken_ns < TURN_CLAIM_NS)
		return 0;
	s->turn.claims = 0;
	/* it has been alone: once a round trip is enough for whoever may come */
	if (sharing_sockets() < 2 && !s->turn.waits && v->now_ns - s->turn.held_ns < v->srtt_ns)
		return 0;
	t = bpf_map_lookup_elem(&turns, &s->turn.path);
	if (!t)
		return s->turn.waits = 0;
	if (t->holder == s->turn.number) {
		turn_hold(s, t, v);
		return s->turn.waits = 0;
	}
	if (s->turn.waits ? !v->unsent : !v->limited) {
		turn_passes(&t->next, s->turn.number, 0);
		return s->turn.waits = s->turn.next = 0;
	}
	return !turn_comes(s, t, v);
}

/* A packet leaves: the first of a connection that claims the turn begins it. */
static __noinline int turn_sends(struct lt_socket *s, u64 now_ns, u64 srtt_ns)
{
	struct lt_turn *t = bpf_map_lookup_elem(&turns, &s->turn.path);

	s->turn.claims = 0;
	if (!t || now_ns - s->turn.taken_ns >= TURN_CLAIM_NS)
		return 0;
	t->holder = s->turn.number;
	turn_held_from(s, t, now_ns, srtt_ns);
	turn_passes(&t->next, s->turn.number, 0);
	return 0;
}

/* The window of one that waits. */
static inline void turn_window(const struct lt_socket *s, struct law_window *w)
{
	if (s->turn.waits)
		w->cwnd_q16 = TIDE_PAIRS_Q16;
}

/*
 * Bytes per second while what the one before has in flight drains: what the link takes, as its own round trips are few and may be of ACKs that the
 * receiver kept back. 0: it holds the turn for longer, or fills no link that it knows.
 */
static inline u64 turn_fresh_pacing(const struct lt_socket *s, const struct tcp_sock *tp)
{
	u64 rate = tide_rate_q32(&s->tide.path);

	if (s->tide.listens || !rate || (!s->turn.claims && clock_ns(tp) - s->turn.taken_ns > 2 * srtt_us(tp) * NSEC_PER_USEC))
		return 0;
	return tide_bytes_per_second(rate / 20 * 19, tp->mss_cache);
}

/*
 * Bytes per second that one that waits sends: the one that is next as many as a Tide that listens, all others together half of that, or a segment
 * each in TURN_SILENCE_S. What is in flight of them is in the holder's way, so it leaves one by one, and by chance between a half and three halves
 * of that: those that began together would all send at once.
 */
static inline u32 turn_pacing(const struct lt_socket *s, const struct tcp_sock *tp, const struct tide_parameters *p)
{
	u64 seldom = tide_seldom(&s->tide, p, tp->mss_cache);
	u64 mean = s->turn.next ? seldom : at_least(seldom / (2 * sharing_sockets()), tp->mss_cache / TURN_SILENCE_S);

	return at_most(at_least(mean / 2 + (mean * (bpf_get_prandom_u32() & 0xffff) >> 16), 1), PACING_UNLIMITED);
}

#endif
