/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few kernel types that Lowtide's BPF programs touch, with just the fields in use. CO-RE relocates every
 * access at load time, so one binary fits many kernels; there is no generated vmlinux.h in the tree.
 */
#ifndef LOWTIDE_KERNEL_H
#define LOWTIDE_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	u8 s6_addr[16];
};

struct sock_common {
	unsigned short skc_family;
	unsigned char skc_state;
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];	/* the root at 0, down to itself; since 6.1 */
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u16 sk_gso_max_segs;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	u32 rtt_us;
};

struct tcp_options_received {
	u32 rcv_tsval;
	u16 saw_tstamp : 1;
	u16 tstamp_ok : 1;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	u64 tcp_mstamp;
	u32 rcv_nxt;
	u32 rcv_wup;
	u32 rcv_wnd;
	u32 snd_una;
	u32 snd_nxt;
	u32 data_segs_out;
	u32 write_seq;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 high_seq;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 packets_out;
	u32 max_packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 mss_cache;
	u32 srtt_us;
	u32 rttvar_us;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 app_limited;
	u8 rate_app_limited : 1;
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
	u64 bytes_acked;
	u64 bytes_received;
	u64 bytes_retrans;
	struct minmax rtt_min;
	struct tcp_rack rack;
	bool is_mptcp;
	u8 bpf_sock_ops_cb_flags;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

/* net/tcp.h: values of the kernel's enum, stable since 2.6 */
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 flags;
	char name[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_map;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

enum {
	TCP_CA_OPEN = 0,
	TCP_CA_CWR = 2,
	TCP_CA_RECOVERY = 3,
	TCP_CA_LOSS = 4,
};

/* linux/tcp.h, linux/in.h, linux/socket.h: the values of the user API */
#define AF_INET6 10
#define AF_SMC 43
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47
#define SK_PACING_NONE 0	/* net/sock.h, enum sk_pacing */
#define SK_PACING_NEEDED 1
#define IPPROTO_IP 0
#define IP_TOS 1
#define IPPROTO_TCP 6
#define IPPROTO_SMC 256	/* since 6.11 */
#define IPPROTO_MPTCP 262
#define TCP_WINDOW_CLAMP 10
#define TCP_CONGESTION 13
#define TCP_SAVE_SYN 27
#define TCP_BPF_SOCK_OPS_CB_FLAGS_SET 1008	/* TCP_BPF_SOCK_OPS_CB_FLAGS, since 6.12 */
#define IPPROTO_IPV6 41
#define IPV6_TCLASS 67

/* net/tcp.h, net/inet_connection_sock.h */
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_OK 1
#define TCP_ECN_DEMAND_CWR 4	/* echo: all ACKs carry ECE */
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16

/* asm-generic/errno.h */
#define E2BIG 7
#define ENOMEM 12
#define EINVAL 22
#define ENOSPC 28
#define EOPNOTSUPP 95
#define ENOBUFS 105

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline bool seq_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

#endif
