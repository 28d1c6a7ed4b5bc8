#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "lib/base/file.h"
#include "lib/event/inotify.h"
#include "lib/event/loop.h"
#include "lib/event/process.h"

namespace keelson::event {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string TempDir() {
  char name[] = "/tmp/event_test.XXXXXX";
  return mkdtemp(name);
}

TEST(Loop, RunsTasksInOrderOnItsThread) {
  auto loop = Loop::Create("test");
  std::vector<int> seen;
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) loop->Post([&, i] { seen.push_back(i); });
  loop->Post([&] {
    EXPECT_TRUE(loop->OnLoopThread());
    done.set_value();
  });
  done.get_future().wait();
  ASSERT_EQ(seen.size(), 100u);
  EXPECT_EQ(seen.back(), 99);
  EXPECT_FALSE(loop->OnLoopThread());
}

TEST(LoopsOfProcess, OutlivesALoopThatItsOwnTaskOwns) {
  auto loop = Loop::Create("test");
  std::promise<void> begin;
  std::atomic<bool> ended = false;
  Loop* raw = loop.get();
  raw->Post([owner = std::move(loop), begun = begin.get_future().share(), &ended]() mutable {
    begun.wait();
    owner.reset();
    ended = true;
  });
  {
    LoopsOfProcess loops;
    begin.set_value();
  }
  EXPECT_TRUE(ended);
}

TEST(LoopsOfProcess, DoesWhatIsQueuedAndLeavesALoopThatDoesNothing) {
  auto loop = Loop::Create("test");
  bool first = false, second = false;
  {
    LoopsOfProcess loops;
    loop->Post([&] { first = true; });
  }
  loop->Post([&] { second = true; });
  loop.reset();
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

TEST(Loop, TimerRunsAndCancels) {
  auto loop = Loop::Create("test");
  std::promise<bool> done;
  std::unique_ptr<Timer> cancelled, kept;
  bool wrong = false;
  loop->Post([&] {
    cancelled = std::make_unique<Timer>(*loop);
    kept = std::make_unique<Timer>(*loop);
    cancelled->Start(milliseconds(1), [&] { wrong = true; });
    kept->Start(milliseconds(5), [&] { done.set_value(wrong); });
    cancelled->Cancel();
  });
  EXPECT_FALSE(done.get_future().get());
  std::promise<void> gone;
  loop->Post([&] { cancelled.reset(), kept.reset(), gone.set_value(); });
  gone.get_future().wait();
}

TEST(Loop, WatchesDescriptors) {
  auto loop = Loop::Create("test");
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd in(fds[0]), out(fds[1]);
  std::promise<void> readable, ready;
  std::unique_ptr<FdWatch> watch;
  loop->Post([&] {
    watch = std::make_unique<FdWatch>(*loop, in.get());
    watch->AwaitReadable([&] { readable.set_value(); });
    ready.set_value();
  });
  ready.get_future().wait();
  auto future = readable.get_future();
  EXPECT_EQ(future.wait_for(milliseconds(20)), std::future_status::timeout);
  ASSERT_EQ(write(out.get(), "x", 1), 1);
  EXPECT_EQ(future.wait_for(seconds(5)), std::future_status::ready);
  std::promise<void> gone;
  loop->Post([&] { watch.reset(), gone.set_value(); });
  gone.get_future().wait();
}

TEST(Loop, LastOwnerMayBeATask) {
  std::promise<void> done;
  {
    auto loop = Loop::Create("test");
    Loop* raw = loop.get();
    raw->Post([held = std::move(loop), &done]() mutable {
      held.reset();
      done.set_value();
    });
  }
  EXPECT_EQ(done.get_future().wait_for(seconds(5)), std::future_status::ready);
}

TEST(Process, ExitCodeOutputAndEnvironment) {
  std::string dir = TempDir();
  auto process = Process::Start({.argv = {"sh", "-c", "echo $WORD; pwd; exit 3"},
                                 .env = {{"WORD", "hello"}},
                                 .working_directory = "/",
                                 .output_file = dir + "/out"});
  ASSERT_TRUE(process) << process.error().message();
  auto exit = process->Wait({});
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(exit->ToString(), "exit code 3");
  EXPECT_EQ(*ReadFile(dir + "/out"), "hello\n/\n");
  EXPECT_TRUE(RemoveTree(dir));
}

TEST(Process, InputAndItsOwnOutput) {
  UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  ASSERT_TRUE(output);
  auto process = Process::Start({.argv = {"tr", "a-z", "A-Z"}, .input = "words", .output_fd = output.get()});
  ASSERT_TRUE(process) << process.error().message();
  ASSERT_TRUE(process->Wait({})->ok());
  char text[16] = {};
  EXPECT_EQ(::pread(output.get(), text, sizeof(text), 0), 5);
  EXPECT_STREQ(text, "WORDS");
}

TEST(Process, MissingProgram) {
  auto process = Process::Start({.argv = {"/no/such/program"}});
  ASSERT_FALSE(process);
  EXPECT_TRUE(process.error().Is(Code::kNotFound)) << process.error().message();
}

TEST(Process, WaitEndsByTimeoutAndStop) {
  auto process = Process::Start({.argv = {"sleep", "100"}});
  ASSERT_TRUE(process);
  EXPECT_TRUE(process->Wait({}, milliseconds(5)).error().Is(Code::kTimeout));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_TRUE(process->Wait(stop.get_token()).error().Is(Code::kCancelled));
  auto exit = process->Terminate(seconds(5));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGTERM);
  EXPECT_FALSE(exit->ok());
}

TEST(Process, TerminateKillsWhoIgnoresSigterm) {
  std::string dir = TempDir();
  auto process = Process::Start({.argv = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"},
                                 .output_file = dir + "/out"});
  ASSERT_TRUE(process);
  while (ReadFile(dir + "/out").value_or("") != "ready\n") std::this_thread::yield();
  auto exit = process->Terminate(milliseconds(20));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
  EXPECT_TRUE(RemoveTree(dir));
}

TEST(Process, DestructionKills) {
  pid_t pid;
  {
    auto process = Process::Start({.argv = {"sleep", "100"}, .die_with_parent = true});
    ASSERT_TRUE(process);
    pid = process->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(Inotify, ReportsAndEnds) {
  std::string dir = TempDir();
  auto inotify = Inotify::Create();
  ASSERT_TRUE(inotify);
  auto watch = inotify->Add(dir, IN_CREATE);
  ASSERT_TRUE(watch);
  EXPECT_TRUE(inotify->Wait({}, milliseconds(1)).error().Is(Code::kTimeout));
  ASSERT_TRUE(WriteFile(dir + "/a", "x"));
  auto events = inotify->Wait({}, seconds(5));
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().name, "a");
  EXPECT_EQ(events->front().watch, *watch);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(inotify->Wait(stop.get_token(), seconds(5)).error().Is(Code::kCancelled));
  EXPECT_TRUE(inotify->Wait({}, milliseconds(1)).error().Is(Code::kTimeout)) << "the stop was another wait's";
  EXPECT_TRUE(RemoveTree(dir));
}

}  // namespace
}  // namespace keelson::event
