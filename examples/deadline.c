/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sends BYTES to HOST:PORT in the background, done within SECONDS, and says once a second how it is doing.
 *
 *	cc -I crates/lowtide-kernel/include -o deadline examples/deadline.c
 *	lowtide run -- ./deadline HOST PORT BYTES SECONDS
 *
 * Outside `lowtide run` it sends all the same, as an ordinary program.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <lowtide.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *at;
	int error = getaddrinfo(host, port, &hints, &list), fd = -1;

	if (error) {
		fprintf(stderr, "%s: %s\n", host, gai_strerror(error));
		exit(1);
	}
	for (at = list; at; at = at->ai_next) {
		fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0)
			break;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (fd < 0)
		fail("connect");
	freeaddrinfo(list);
	return fd;
}

static void tell(int fd)
{
	struct lowtide_status status;
	socklen_t length = sizeof(status);

	if (getsockopt(fd, SOL_LOWTIDE, LOWTIDE_STATUS, &status, &length) || !(status.flags & LOWTIDE_HAS_GOAL))
		return;
	printf("w %.4f needs %llu has %llu bytes/s acknowledged %llu left %.1f s expected in %.1f s\n", status.weight,
	       (unsigned long long)status.target_rate, (unsigned long long)status.achieved_rate,
	       (unsigned long long)status.acknowledged, status.left_ns > 0 ? status.left_ns / 1e9 : 0.0,
	       status.expected_ns >= 0 ? status.expected_ns / 1e9 : -1.0);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static char block[1 << 16];
	struct timeval patience = { .tv_usec = 200000 };
	struct lowtide_goal goal;
	double start, told;
	size_t left;
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: deadline HOST PORT BYTES SECONDS\n");
		return 2;
	}
	goal.size = left = strtoull(argv[3], NULL, 10);
	goal.within_ns = strtod(argv[4], NULL) * 1e9;
	fd = connect_to(argv[1], argv[2]);
	start = told = now();
	if (setsockopt(fd, SOL_LOWTIDE, LOWTIDE_GOAL, &goal, sizeof(goal)) == 0)
		printf("goal %zu bytes within %s s\n", left, argv[4]);
	else if (errno == ENOPROTOOPT)
		printf("no Lowtide here: an ordinary transfer\n");
	else
		fail("LOWTIDE_GOAL");

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (left) {
		ssize_t sent = send(fd, block, left < sizeof(block) ? left : sizeof(block), MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			fail("send");
		if (sent > 0)
			left -= sent;
		if (now() - told >= 1) {
			told = now();
			tell(fd);
		}
	}
	shutdown(fd, SHUT_WR);
	while (recv(fd, block, sizeof(block), 0) > 0)
		;	/* until the other side has it all and closes */
	printf("done after %.2f s\n", now() - start);
	return 0;
}
