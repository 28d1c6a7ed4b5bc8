#include "lib/linux/notify.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::linux {
namespace {

// systemd's end of the socket.
class NotifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/notify.XXXXXX";
    dir_ = mkdtemp(name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (dir_ + "/socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
  }
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
    EXPECT_TRUE(RemoveTree(dir_));
  }
  void SetWatchdog(const char* microseconds) {
    setenv("WATCHDOG_USEC", microseconds, 1);
    setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  }
  std::string Next() {
    char text[256];
    const ssize_t size = recv(socket_.get(), text, sizeof(text), 0);
    return std::string(text, size < 0 ? 0 : static_cast<size_t>(size));
  }
  Result<> Run(std::stop_token stop) {
    ServiceGroup::Service service = SystemdNotifier(
        {}, [this]() -> Result<> { return healthy_ ? Result<>() : Error(Code::kUnavailable, "stuck"); },
        clock_);
    return service.run(stop, [] {});
  }

  std::string dir_;
  UniqueFd socket_;
  FakeClock clock_;
  std::atomic<bool> healthy_ = true;
};

TEST_F(NotifyTest, TellsOfBeginAndEnd) {
  std::jthread daemon([this](std::stop_token stop) { EXPECT_TRUE(Run(stop)); });
  EXPECT_EQ(Next(), "READY=1");
  daemon.request_stop();
  EXPECT_EQ(Next(), "STOPPING=1");
}

TEST_F(NotifyTest, FeedsTheWatchdogWhileHealthy) {
  SetWatchdog("20000000");
  std::jthread daemon([this](std::stop_token stop) { EXPECT_TRUE(Run(stop)); });
  EXPECT_EQ(Next(), "READY=1");
  EXPECT_EQ(Next(), "WATCHDOG=1");
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(Next(), "WATCHDOG=1");
  clock_.AwaitWaiters(1);
  healthy_ = false;
  clock_.Advance(std::chrono::seconds(10));
  clock_.AwaitWaiters(1);
  daemon.request_stop();
  EXPECT_EQ(Next(), "STOPPING=1");  // and no WATCHDOG=1 before it
}

TEST_F(NotifyTest, RefusesATimeThatIsTooShort) {
  SetWatchdog("500000");
  auto run = Run({});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().message(), "configure watchdog timeout too small: 500000us");
}

}  // namespace
}  // namespace keelson::linux
