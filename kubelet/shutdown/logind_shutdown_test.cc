// Holds a shutdown of the real systemd-logind back. Driven by tests/systemd/run.sh, below a systemd of its
// own whose poweroff.target does nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "kubelet/shutdown/manager.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {
namespace {

using std::chrono::seconds;
using PodPtr = std::shared_ptr<const corev1::Pod>;

constexpr char kManager[] = " org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ";
constexpr char kUnits[] = "/run/systemd/system";

// What the command prints; its end has to be a good one.
std::string Output(const std::string& command) {
  FILE* out = ::popen(command.c_str(), "r");
  std::string text;
  std::array<char, 256> part;
  while (out && ::fgets(part.data(), part.size(), out)) text += part.data();
  EXPECT_TRUE(out && ::pclose(out) == 0) << command << ": " << text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}
std::string LogindProperty(const std::string& name) {
  return Output("busctl get-property" + std::string(kManager) + name);
}
std::string StateOf(const std::string& unit) {
  return Output("systemctl show --value -p ActiveState " + unit);
}

PodPtr PodOf(const std::string& name, int32_t priority) {
  auto pod = std::make_shared<corev1::Pod>();
  pod->mutable_metadata()->set_name(name);
  pod->mutable_metadata()->set_uid(name);
  pod->mutable_spec()->set_priority(priority);
  return pod;
}

class LogindShutdownTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // In the place of systemd's own, so that the test lives to see it reached.
    ASSERT_TRUE(WriteFile(std::string(kUnits) + "/poweroff.target", "[Unit]\nDescription=stays on\n"));
    Output("systemctl daemon-reload");
    Output("systemctl start dbus.socket systemd-logind.service");
    MutexLock lock(mutex_);
    pods_ = {PodOf("web", 0), PodOf("critical", 2'000'001'000)};
  }
  void TearDown() override { Output("systemctl stop poweroff.target"); }

  ShutdownManager::Dependencies Dependencies() {
    return {[] { return linux::Logind::Connect(); },
            [this] {
              MutexLock lock(mutex_);
              return pods_;
            },
            // A pod ends when the test says so; what it sees of the system meanwhile is noted.
            [this](const corev1::Pod& pod, seconds) { Note("end " + pod.metadata().name()); },
            [this](const std::string& message) { Note(message); }, [] {}};
  }
  void Note(const std::string& line) {
    MutexLock lock(mutex_);
    log_.push_back(line);
    changed_.notify_all();
  }
  // Blocks until `line` was noted, and forgets what was noted until then.
  void Await(const std::string& line) KEELSON_NO_THREAD_SAFETY_ANALYSIS {
    MutexLock lock(mutex_);
    auto found = log_.end();
    while ((found = std::find(log_.begin(), log_.end(), line)) == log_.end()) changed_.wait(mutex_);
    log_.erase(log_.begin(), found + 1);
  }
  void AwaitLock() {
    while (Output("systemd-inhibit --list --no-legend --no-pager").find("Kubelet needs time") ==
           std::string::npos) {
      std::this_thread::yield();
    }
  }
  void End(const std::string& name) {
    MutexLock lock(mutex_);
    std::erase_if(pods_, [&](const PodPtr& pod) { return pod->metadata().name() == name; });
  }

  const std::vector<ShutdownPeriod> periods_ = {{0, 40}, {2'000'000'000, 20}};
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> log_ KEELSON_GUARDED_BY(mutex_);
  std::vector<PodPtr> pods_ KEELSON_GUARDED_BY(mutex_);
};

TEST_F(LogindShutdownTest, ThePoweroffWaitsForThePodsAndNoLonger) {
  ShutdownManager manager(Dependencies(), periods_);
  std::jthread runner([&](std::stop_token stop) {
    auto ran = manager.Run(stop);
    EXPECT_TRUE(ran) << ran.error().message();
  });
  AwaitLock();
  EXPECT_EQ(LogindProperty("InhibitDelayMaxUSec"), "t 60000000") << "the drop-in was not read";
  for (int round = 0; round < 2;
       ++round) {  // a shutdown that is over is no reason not to hold the next one back
    if (round > 0) {
      MutexLock lock(mutex_);
      pods_ = {PodOf("web", 0), PodOf("critical", 2'000'001'000)};
    }
    Output("busctl call" + std::string(kManager) + "PowerOff b false");
    Await("Shutdown manager detected shutdown event");
    Await("end web");
    EXPECT_TRUE(manager.shutting_down());
    EXPECT_EQ(LogindProperty("PreparingForShutdown"), "b true");
    EXPECT_EQ(StateOf("poweroff.target"), "inactive") << "the system did not wait";
    End("web");
    Await("end critical");
    EXPECT_EQ(StateOf("poweroff.target"), "inactive") << "the system did not wait for the second group";
    End("critical");
    // With its target reached, logind says that it is not shutting down any more.
    Await("Shutdown manager detected cancelled event");
    EXPECT_EQ(StateOf("poweroff.target"), "active") << "the system did not go on";
    Output("systemctl stop poweroff.target");
    AwaitLock();
    EXPECT_FALSE(manager.Admit());
  }
}

TEST_F(LogindShutdownTest, ALogindThatStartsAnewIsHeldBackToo) {
  ShutdownManager manager(Dependencies(), periods_);
  std::jthread runner([&](std::stop_token stop) { EXPECT_TRUE(manager.Run(stop)); });
  AwaitLock();
  Output("systemctl restart systemd-logind.service");
  AwaitLock();
  Output("busctl call" + std::string(kManager) + "PowerOff b false");
  Await("end web");
  EXPECT_EQ(StateOf("poweroff.target"), "inactive");
  End("web");
  Await("end critical");
  End("critical");
  Await("Shutdown manager detected cancelled event");
}

}  // namespace
}  // namespace keelson::kubelet
