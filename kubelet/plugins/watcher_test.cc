#include "kubelet/plugins/watcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "kubelet/testing/metric_value.h"
#include "lib/base/file.h"
#include "lib/rpc/server.h"

#include <grpcpp/grpcpp.h>

#include "lib/rpc/proto/pluginregistration.grpc.pb.h"

namespace keelson::kubelet {
namespace {

// What happened, in order, for tests to wait for.
class Journal {
 public:
  void Add(const std::string& line) {
    MutexLock lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  // The next line.
  std::string Next() {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (lines_.size() == read_) {
      if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return "nothing";
    }
    return lines_[read_++];
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ KEELSON_GUARDED_BY(mutex_);
  size_t read_ KEELSON_GUARDED_BY(mutex_) = 0;
};

class FakeHandler : public PluginHandler {
 public:
  explicit FakeHandler(Journal& journal) : journal_(journal) {}
  Result<> Validate(const std::string& name, const std::string&,
                    const std::vector<std::string>& versions) override {
    if (versions.empty()) return Error(Code::kInvalid, "plugin " + name + " has no versions");
    return {};
  }
  Result<> Register(const std::string& name, const std::string& endpoint, const std::vector<std::string>&,
                    std::stop_token) override {
    journal_.Add("register " + name + " at " + endpoint);
    if (failures_-- > 0) return Error(Code::kUnavailable, "not now");
    return {};
  }
  void Deregister(const std::string& name, const std::string& endpoint) override {
    journal_.Add("deregister " + name + " at " + endpoint);
  }
  void FailOnce() { failures_ = 1; }

 private:
  Journal& journal_;
  std::atomic<int> failures_{0};
};

class FakePlugin : public pluginregistration::Registration::Service {
 public:
  FakePlugin(Journal& journal, const std::string& socket, PluginInfo info)
      : journal_(journal), info_(std::move(info)) {
    auto server = rpc::UnixServer::Start(socket, {this});
    if (!server) std::abort();
    server_ = std::move(*server);
  }
  grpc::Status GetInfo(grpc::ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* reply) override {
    reply->set_type(info_.type);
    reply->set_name(info_.name);
    reply->set_endpoint(info_.endpoint);
    for (const std::string& version : info_.versions) reply->add_supported_versions(version);
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const pluginregistration::RegistrationStatus* request,
                                        pluginregistration::RegistrationStatusResponse*) override {
    journal_.Add(request->plugin_registered() ? "told yes" : "told " + request->error());
    return grpc::Status::OK;
  }

 private:
  Journal& journal_;
  const PluginInfo info_;
  std::unique_ptr<rpc::UnixServer> server_;
};

std::string TempDir() {
  char name[] = "/tmp/keelson-plugins-XXXXXX";
  if (!::mkdtemp(name)) std::abort();
  return name;
}

class PluginWatcherTest : public testing::Test {
 protected:
  void TearDown() override {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    plugins_.clear();
    EXPECT_TRUE(RemoveTree(root_));
  }
  void Start() {
    thread_ = std::jthread(
        [this](std::stop_token stop) { EXPECT_TRUE(watcher_.Run(stop, [this] { journal_.Add("ready"); })); });
    ASSERT_EQ(journal_.Next(), "ready");
  }
  void AddPlugin(const std::string& path, PluginInfo info) {
    plugins_[path] = std::make_unique<FakePlugin>(journal_, dir_ + "/" + path, std::move(info));
  }

  const std::string root_ = TempDir(), dir_ = root_ + "/plugins_registry";
  Journal journal_;
  FakeHandler handler_{journal_};
  FakeClock clock_;
  std::map<std::string, std::unique_ptr<FakePlugin>> plugins_;
  PluginWatcher watcher_{dir_, {{"CSIPlugin", &handler_}}, clock_};
  std::jthread thread_;
};

TEST_F(PluginWatcherTest, PluginsComeAndGo) {
  ASSERT_TRUE(MakeDirs(dir_));
  AddPlugin("early.sock", {"CSIPlugin", "early.example.com", "", {"1.0.0"}});
  Start();
  EXPECT_EQ(journal_.Next(), "register early.example.com at " + dir_ + "/early.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
  AddPlugin("late.sock", {"CSIPlugin", "late.example.com", "/elsewhere/csi.sock", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "register late.example.com at /elsewhere/csi.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
  auto told = [this](const char* state) {
    return MetricValue("plugin_manager_total_plugins{socket_path=\"" + dir_ + "/late.sock\",state=\"" +
                       state + "\"}");
  };
  EXPECT_EQ(told("desired_state_of_world"), 1);
  EXPECT_EQ(told("actual_state_of_world"), 1);
  plugins_.erase("late.sock");
  EXPECT_EQ(journal_.Next(), "deregister late.example.com at /elsewhere/csi.sock");
  EXPECT_EQ(told("desired_state_of_world"), 0);
  EXPECT_EQ(told("actual_state_of_world"), 0);
}

TEST_F(PluginWatcherTest, AReplacedSocketIsAnotherPlugin) {
  Start();
  AddPlugin("csi.sock", {"CSIPlugin", "one.example.com", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "register one.example.com at " + dir_ + "/csi.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
  plugins_.erase("csi.sock");
  AddPlugin("csi.sock", {"CSIPlugin", "two.example.com", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "deregister one.example.com at " + dir_ + "/csi.sock");
  EXPECT_EQ(journal_.Next(), "register two.example.com at " + dir_ + "/csi.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
}

TEST_F(PluginWatcherTest, InFoldersButNotHidden) {
  Start();
  ASSERT_TRUE(MakeDirs(dir_ + "/.hidden"));
  AddPlugin(".hidden/a.sock", {"CSIPlugin", "a.example.com", "", {"1.0.0"}});
  AddPlugin(".b.sock", {"CSIPlugin", "b.example.com", "", {"1.0.0"}});
  ASSERT_TRUE(WriteFile(dir_ + "/c.sock", "not a socket"));
  ASSERT_TRUE(MakeDirs(dir_ + "/driver/v1"));
  AddPlugin("driver/v1/d.sock", {"CSIPlugin", "d.example.com", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "register d.example.com at " + dir_ + "/driver/v1/d.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
  ASSERT_EQ(::rename((dir_ + "/driver").c_str(), (root_ + "/away").c_str()), 0);
  EXPECT_EQ(journal_.Next(), "deregister d.example.com at " + dir_ + "/driver/v1/d.sock");
}

TEST_F(PluginWatcherTest, TriesAgainAndSaysWhy) {
  Start();
  AddPlugin("type.sock", {"Other", "x", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(),
            "told RegisterPlugin error -- no handler registered for plugin type: Other at socket " + dir_ +
                "/type.sock");
  plugins_.erase("type.sock");
  AddPlugin("version.sock", {"CSIPlugin", "x", "", {}});
  EXPECT_EQ(journal_.Next(),
            "told RegisterPlugin error -- plugin validation failed with err: plugin x has no versions");
  plugins_.erase("version.sock");
  handler_.FailOnce();
  AddPlugin("slow.sock", {"CSIPlugin", "slow.example.com", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "register slow.example.com at " + dir_ + "/slow.sock");
  EXPECT_EQ(journal_.Next(), "told RegisterPlugin error -- plugin registration failed with err: not now");
  clock_.AwaitWaiters(2);  // both workers have nothing to do
  clock_.Advance(std::chrono::minutes(3));
  EXPECT_EQ(journal_.Next(), "register slow.example.com at " + dir_ + "/slow.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
}

TEST_F(PluginWatcherTest, TheFolderItselfIsMadeAgain) {
  Start();
  ASSERT_TRUE(RemoveTree(dir_));
  // It is back when its watch is.
  while (!PathExists(dir_)) std::this_thread::yield();
  AddPlugin("csi.sock", {"CSIPlugin", "one.example.com", "", {"1.0.0"}});
  EXPECT_EQ(journal_.Next(), "register one.example.com at " + dir_ + "/csi.sock");
  EXPECT_EQ(journal_.Next(), "told yes");
}

}  // namespace
}  // namespace keelson::kubelet
