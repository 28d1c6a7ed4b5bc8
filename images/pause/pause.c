/* Process 1 of a pod sandbox: holds the pod's namespaces open, reaps orphans that are re-parented to it,
 * and ends at the first SIGINT or SIGTERM. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGCHLD);
  if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return 1;
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) return 1;
    if (signal != SIGCHLD) return 0;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
}
