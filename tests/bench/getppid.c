// SPDX-License-Identifier: Apache-2.0
/*
 * getppid.c: makes the cheapest system call there is for as long as it is left alone, and counts
 * in a file of 8 bytes, which is mapped: whoever measures it reads it there. Knows nothing of what
 * is measured.
 *
 * usage: getppid FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS 1000 /* between two looks at the count */

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
	volatile uint64_t *made;

	if (fd < 0) {
		fprintf(stderr, "usage: getppid FILE\n");
		return 2;
	}
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made == MAP_FAILED) {
		perror("getppid: cannot map the file");
		return 1;
	}
	for (;;) {
		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		*made += CALLS;
	}
}
