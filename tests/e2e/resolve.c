// Prints the addresses of the names given, sorted, in one line each; or the resolver's error.
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { kMost = 256 };

static int Compare(const void* a, const void* b) { return strcmp(a, b); }

int main(int argc, char** argv) {
  static char texts[kMost][INET6_ADDRSTRLEN];
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(argv[i], NULL, &wanted, &found);
    if (error != 0) {
      puts(gai_strerror(error));
      ++failures;
      continue;
    }
    size_t count = 0;
    for (struct addrinfo* at = found; at && count < kMost; at = at->ai_next) {
      if (getnameinfo(at->ai_addr, at->ai_addrlen, texts[count], sizeof texts[0], NULL, 0, NI_NUMERICHOST) == 0) ++count;
    }
    freeaddrinfo(found);
    qsort(texts, count, sizeof texts[0], Compare);
    for (size_t n = 0; n < count; ++n) printf("%s%s", n > 0 ? " " : "", texts[n]);
    puts("");
  }
  return failures > 0;
}
