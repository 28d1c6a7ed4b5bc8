#include "lib/linux/logind.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "lib/base/file.h"
#include "lib/linux/bus_objects.h"

namespace keelson::linux {
namespace {

constexpr char kPath[] = "/org/freedesktop/login1", kManager[] = "org.freedesktop.login1.Manager";

// A message bus for this test alone.
class PrivateBus {
 public:
  PrivateBus() {
    int out[2];
    if (pipe(out) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
             nullptr);
      _exit(127);
    }
    close(out[1]);
    char text[256] = {};
    const ssize_t size = read(out[0], text, sizeof(text) - 1);
    close(out[0]);
    if (size > 0) address_ = std::string(text, static_cast<size_t>(size) - 1);
  }
  ~PrivateBus() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  const std::string& address() const { return address_; }  // empty: there is no dbus-daemon here

 private:
  pid_t pid_;
  std::string address_;
};

// Plays logind's part on the bus: the property, the lock, the signal.
class StandIn {
 public:
  explicit StandIn(const std::string& address) {
    sd_bus* bus = nullptr;
    if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address.c_str()) < 0 ||
        sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0) {
      abort();
    }
    bus_.reset(bus);
    static const sd_bus_vtable kTable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("InhibitDelayMaxUSec", "t", Delay, 0, 0),
        SD_BUS_METHOD("Inhibit", "ssss", "h", Inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
    };
    if (pipe(lock_) != 0 || sd_bus_add_object_vtable(bus, nullptr, kPath, kManager, kTable, this) < 0 ||
        sd_bus_request_name(bus, "org.freedesktop.login1", 0) < 0) {
      abort();
    }
  }
  ~StandIn() {
    close(lock_[0]);
    if (lock_[1] >= 0) close(lock_[1]);
  }

  // Answers calls until a stop is requested.
  void Serve(std::stop_token stop) {
    while (!stop.stop_requested()) {
      while (sd_bus_process(bus_.get(), nullptr) > 0) {
      }
      sd_bus_wait(bus_.get(), 20'000);
    }
  }
  void Say(bool begins) {
    sd_bus_emit_signal(bus_.get(), kPath, kManager, "PrepareForShutdown", "b", begins ? 1 : 0);
    sd_bus_flush(bus_.get());
  }
  // Blocks until the lock is free.
  bool Released() {
    close(std::exchange(lock_[1], -1));
    pollfd end = {lock_[0], 0, 0};
    return poll(&end, 1, 5000) == 1 && (end.revents & POLLHUP);
  }
  std::string asked;

 private:
  static int Delay(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*,
                   sd_bus_error*) {
    return sd_bus_message_append(reply, "t", uint64_t{5'000'000});
  }
  static int Inhibit(sd_bus_message* call, void* self, sd_bus_error*) {
    const char *what, *who, *why, *mode;
    if (sd_bus_message_read(call, "ssss", &what, &who, &why, &mode) < 0) return -EINVAL;
    auto* own = static_cast<StandIn*>(self);
    own->asked = std::string(what) + "|" + who + "|" + why + "|" + mode;
    return sd_bus_reply_method_return(call, "h", own->lock_[1]);
  }
  Bus bus_;
  int lock_[2];
};

class LogindTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (bus_.address().empty()) GTEST_SKIP() << "dbus-daemon is not installed";
    stand_in_.emplace(bus_.address());
  }
  // Runs `call` on a connection while the fake logind answers.
  template <typename Call>
  void With(Call call) {
    std::jthread server([this](std::stop_token stop) { stand_in_->Serve(stop); });
    auto logind = Logind::Connect(bus_.address());
    ASSERT_TRUE(logind) << logind.error().message();
    call(**logind, server);
  }
  PrivateBus bus_;
  std::optional<StandIn> stand_in_;
};

TEST_F(LogindTest, HoldsAShutdownBack) {
  With([this](Logind& logind, std::jthread& server) {
    EXPECT_EQ(logind.InhibitDelay()->count(), 5'000'000);
    auto lock = logind.DelayShutdown("kubelet", "pods");
    ASSERT_TRUE(lock) << lock.error().message();
    server.request_stop();
    server.join();
    EXPECT_EQ(stand_in_->asked, "shutdown|kubelet|pods|delay");
    stand_in_->Say(true);
    stand_in_->Say(false);
    EXPECT_TRUE(logind.NextShutdown({}).value_or(false));
    EXPECT_FALSE(logind.NextShutdown({}).value_or(true));
    lock->Reset();
    EXPECT_TRUE(stand_in_->Released());
  });
}

TEST_F(LogindTest, AStopEndsTheWait) {
  With([](Logind& logind, std::jthread&) {
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] { return logind.NextShutdown(stop.get_token()); });
    stop.request_stop();
    auto heard = waiting.get();
    ASSERT_FALSE(heard);
    EXPECT_TRUE(heard.error().Is(Code::kCancelled));
  });
}

TEST(Logind, IsNotEverywhere) {
  PrivateBus bus;
  if (bus.address().empty()) GTEST_SKIP() << "dbus-daemon is not installed";
  EXPECT_FALSE(Logind::Connect(bus.address()));
  EXPECT_TRUE(Logind::Connect("unix:path=/nowhere").error().Is(Code::kUnavailable));
}

}  // namespace
}  // namespace keelson::linux
