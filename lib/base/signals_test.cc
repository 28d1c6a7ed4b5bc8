#include "lib/base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/service_group.h"

namespace keelson {
namespace {

// How a child that does `run` ends, once it has written a byte and been sent `number`.
int EndOf(int number, const std::function<int(int ready)>& run) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run(ends[1]));
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(::kill(child, number), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ends[0]);
  ::close(ends[1]);
  return status;
}

void Tell(int ready) { EXPECT_EQ(::write(ready, "x", 1), 1); }

TEST(Signals, EndAProgramThatStillStarts) {
  for (int number : {SIGTERM, SIGINT}) {
    const int status = EndOf(number, [](int ready) {
      BlockSignals();
      Tell(ready);
      for (;;) ::pause();
      return 0;
    });
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), number);
  }
}

TEST(Signals, StopAGroupInOrder) {
  for (int number : {SIGTERM, SIGINT}) {
    const int status = EndOf(number, [](int ready) {
      BlockSignals();
      ServiceGroup group;
      bool stopped = false;
      group.Add({"one", {}, [&](std::stop_token stop, ServiceGroup::Ready) -> Result<> {
                   std::stop_callback seen(stop, [&stopped] { stopped = true; });
                   Tell(ready);
                   while (!stop.stop_requested()) ::usleep(1000);
                   return {};
                 }});
      const int code = group.RunUntilSignal();
      return stopped ? code : 7;
    });
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST(Signals, AClosedPipeIsAnError) {
  const int status = EndOf(SIGTERM, [](int ready) {
    BlockSignals();
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    ::close(ends[0]);
    const bool refused = ::write(ends[1], "x", 1) < 0 && errno == EPIPE;
    Tell(ready);
    if (!refused) ::_exit(3);
    for (;;) ::pause();
    return 0;
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

}  // namespace
}  // namespace keelson
