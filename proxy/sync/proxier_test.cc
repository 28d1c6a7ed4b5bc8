#include "proxy/sync/proxier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <latch>
#include <thread>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::proxy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A fake kernel that outlives the proxier, counts, and can be told to refuse.
struct SharedKernel {
  Mutex mutex;
  CondVar changed;
  nft::FakeKernel fake KEELSON_GUARDED_BY(mutex);
  int refusals KEELSON_GUARDED_BY(mutex) = 0;
  int attempts KEELSON_GUARDED_BY(mutex) = 0;
  std::string bad KEELSON_GUARDED_BY(mutex);    // what speaks of it is invalid
  bool busy KEELSON_GUARDED_BY(mutex) = false;  // transactions take until it is not

  class View : public nft::Kernel {
   public:
    explicit View(SharedKernel& shared) : shared_(shared) {}
    Result<> Apply(const nft::Transaction& t) override {
      MutexLock lock(shared_.mutex);
      ++shared_.attempts;
      shared_.changed.notify_all();
      while (shared_.busy) shared_.changed.wait(shared_.mutex);
      if (shared_.refusals > 0) {
        --shared_.refusals;
        return Error::FromErrno(EBUSY, "refused");
      }
      if (!shared_.bad.empty() && nft::ToText(t).find(shared_.bad) != std::string::npos) {
        return Error::FromErrno(EINVAL, shared_.bad);
      }
      return shared_.fake.Apply(t);
    }
    Result<std::optional<nft::Ruleset>> Read(const nft::Table& t) override {
      MutexLock lock(shared_.mutex);
      return shared_.fake.Read(t);
    }
    Result<bool> HasChain(const nft::Table& t, const std::string& chain) override {
      MutexLock lock(shared_.mutex);
      return shared_.fake.HasChain(t, chain);
    }
    Result<uint32_t> Generation() override {
      MutexLock lock(shared_.mutex);
      return shared_.fake.Generation();
    }

   private:
    SharedKernel& shared_;
  };

  std::string Text() {
    MutexLock lock(mutex);
    return TextLocked();
  }
  // Blocks until the kernel's text fits; false after 10 s.
  bool Await(const std::function<bool(const std::string&)>& fits) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    MutexLock lock(mutex);
    while (!fits(TextLocked())) {
      if (changed.wait_until(mutex, limit) == std::cv_status::timeout) return fits(TextLocked());
    }
    return true;
  }
  // The same of any condition, which is asked without the lock.
  bool AwaitAny(const std::function<bool()>& holds) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds()) {
      MutexLock lock(mutex);
      const int seen = attempts;
      while (attempts == seen) {
        if (changed.wait_for(mutex, std::chrono::milliseconds(100)) == std::cv_status::timeout) break;
      }
      if (std::chrono::steady_clock::now() > limit) return false;
    }
    return true;
  }

 private:
  std::string TextLocked() KEELSON_REQUIRES(mutex) {
    auto found = fake.Read({nft::Family::kIpv4, "keelson-proxy"});
    return found && *found ? nft::ToText(**found) : "";
  }
};

corev1::Service MakeService(const std::string& ip) {
  corev1::Service service;
  service.mutable_spec()->set_cluster_ip(ip);
  service.mutable_spec()->add_ports()->set_port(80);
  return service;
}

discoveryv1::EndpointSlice MakeSlice(const std::string& ip) {
  discoveryv1::EndpointSlice slice;
  slice.mutable_metadata()->set_namespace_("default");
  (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "web";
  slice.set_address_type("IPv4");
  slice.add_ports()->set_port(8080);
  slice.add_endpoints()->add_addresses(ip);
  return slice;
}

class ProxierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ProxierOptions options{.node_name = "here"};
    options.others = others_;
    options.min_sync_period = min_sync_period_;
    proxier_ = std::make_unique<Proxier>(
        options, Mode("keelson-proxy"),
        [](const std::vector<IpAddress>& own) {
          return Result<NodeIps>(NodeIps{own, own});
        },
        [this](const std::string& service, const char* reason, const std::string&) {
          MutexLock lock(kernel_.mutex);
          warnings_.push_back(service + " " + reason);
        },
        health_, clock_);
    thread_ = std::jthread(
        [this](std::stop_token stop) { EXPECT_TRUE(proxier_->Run(stop, [this] { ready_.count_down(); })); });
  }
  // A mode of that name, which keeps tables of that name.
  DataplaneMode Mode(const std::string& name) {
    DataplaneMode out = nftables::Mode({.v4 = true, .table = name}, {.v4 = false, .table = name}, [this] {
      return Result<std::unique_ptr<nft::Kernel>>(std::make_unique<SharedKernel::View>(kernel_));
    });
    out.name = name;
    return out;
  }
  std::string TextOf(const std::string& table) {
    MutexLock lock(kernel_.mutex);
    auto found = kernel_.fake.Read({nft::Family::kIpv4, table});
    return found && *found ? nft::ToText(**found) : "";
  }
  std::chrono::milliseconds min_sync_period_{0};
  std::vector<DataplaneMode> others_;
  SharedKernel kernel_;
  std::vector<std::string> warnings_ KEELSON_GUARDED_BY(kernel_.mutex);
  FakeClock clock_;
  Health health_{std::chrono::seconds(60), clock_};
  std::latch ready_{1};
  std::unique_ptr<Proxier> proxier_;
  std::jthread thread_;
};

auto Has(std::string part) {
  return [part](const std::string& text) { return text.find(part) != std::string::npos; };
}

TEST_F(ProxierTest, WritesOnceSyncedAndFollowsChanges) {
  auto service = MakeService("10.96.0.1");
  auto slice = MakeSlice("10.1.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->OnSlice("default/web-1", &slice);
  EXPECT_EQ(kernel_.Text(), "");
  proxier_->MarkSynced();
  ready_.wait();
  EXPECT_TRUE(health_.Healthy());
  EXPECT_THAT(kernel_.Text(), HasSubstr("10.96.0.1 . tcp . 80 . 0 : 10.1.0.1 . 8080"));

  auto moved = MakeSlice("10.1.0.2");
  proxier_->OnSlice("default/web-1", &moved);
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.1 . tcp . 80 . 0 : 10.1.0.2 . 8080")));
  corev1::Node node;
  auto& address = *node.mutable_status()->add_addresses();
  address.set_type("InternalIP");
  address.set_address("172.30.0.1");
  proxier_->OnNode(&node);
  EXPECT_TRUE(kernel_.Await(Has("set nodeport-ips { type ipv4_addr }\n    172.30.0.1")));
  proxier_->OnService("default/web", nullptr);
  EXPECT_TRUE(
      kernel_.Await([](const std::string& text) { return text.find("10.96.0.1") == std::string::npos; }));
}

TEST_F(ProxierTest, TriesAgainAfterARefusal) {
  proxier_->MarkSynced();
  ready_.wait();
  int before;
  {
    MutexLock lock(kernel_.mutex);
    kernel_.refusals = 2;  // also of the second look
    before = kernel_.attempts;
  }
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  {
    MutexLock lock(kernel_.mutex);
    while (kernel_.attempts < before + 2) kernel_.changed.wait(kernel_.mutex);
  }
  clock_.AwaitWaiters(1);
  EXPECT_THAT(kernel_.Text(), Not(HasSubstr("10.96.0.1")));
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.1")));
}

TEST_F(ProxierTest, RepairsWhatOthersDidAtTheNextLook) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->MarkSynced();
  ready_.wait();
  {
    MutexLock lock(kernel_.mutex);
    nft::Transaction drop({nft::Family::kIpv4, "keelson-proxy"});
    drop.DeleteTable();
    ASSERT_TRUE(kernel_.fake.Apply(drop));
  }
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.1")));
}

TEST_F(ProxierTest, RepairsAtOnceWhatTheKernelTellsOf) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->MarkSynced();
  ready_.wait();
  proxier_->TablesWatched(true);
  {
    MutexLock lock(kernel_.mutex);
    nft::Transaction drop({nft::Family::kIpv4, "keelson-proxy"});
    drop.DeleteTable();
    ASSERT_TRUE(kernel_.fake.Apply(drop));
  }
  proxier_->OnTables({.tables = {{nft::Family::kIpv4, "docker", 7}}});  // nothing of ours
  proxier_->OnTables({.tables = {{nft::Family::kIpv4, "keelson-proxy", 7}}});
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.1")));
}

TEST_F(ProxierTest, DropsWhatGoesToUnallocatedAddresses) {
  proxier_->MarkSynced();
  ready_.wait();
  api::networking::v1::ServiceCIDR cidr;
  cidr.mutable_spec()->add_cidrs("10.96.0.0/12");
  proxier_->OnServiceCidr("kubernetes", &cidr);
  EXPECT_TRUE(kernel_.Await(Has("r0 == 0x0a600000; drop")));
}

TEST_F(ProxierTest, NamesTheServiceThatTheKernelRefuses) {
  auto good = MakeService("10.96.0.1"), bad = MakeService("10.96.0.66");
  {
    MutexLock lock(kernel_.mutex);
    kernel_.bad = "10.96.0.66";
  }
  proxier_->OnService("default/good", &good);
  proxier_->OnService("default/bad", &bad);
  proxier_->MarkSynced();
  ready_.wait();
  EXPECT_THAT(kernel_.Text(), HasSubstr("10.96.0.1"));
  MutexLock lock(kernel_.mutex);
  EXPECT_EQ(warnings_, std::vector<std::string>{"default/bad FailedToSyncServiceRules"});
}

TEST_F(ProxierTest, SwitchesToAnotherModeAndBack) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->MarkSynced();
  ready_.wait();
  for (const auto& [from, to] : {std::pair("keelson-proxy", "other"), std::pair("other", "keelson-proxy")}) {
    proxier_->Switch(Mode(to));
    EXPECT_TRUE(kernel_.AwaitAny([&, from = from] { return TextOf(from).empty(); })) << to;
    EXPECT_THAT(TextOf(to), HasSubstr("10.96.0.1 . tcp . 80")) << to;
  }
  // What cannot be opened changes nothing.
  DataplaneMode broken = Mode("broken");
  broken.make = [](bool, const auto&) -> Result<std::unique_ptr<Dataplane>> {
    return Error(Code::kUnavailable, "not today");
  };
  proxier_->Switch(broken);
  auto other = MakeService("10.96.0.2");
  proxier_->OnService("default/other", &other);
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.2 . tcp . 80")));
  EXPECT_THAT(kernel_.Text(), HasSubstr("10.96.0.1 . tcp . 80"));
}

// A proxy was killed after it had switched, or is started in another mode.
class OtherModeProxierTest : public ProxierTest {
 protected:
  void SetUp() override {
    nft::Transaction make({nft::Family::kIpv4, "other"});
    make.AddTable();
    make.AddChain({.name = "services"});
    {
      MutexLock lock(kernel_.mutex);
      ASSERT_TRUE(kernel_.fake.Apply(make));
    }
    others_ = {Mode("other")};
    ProxierTest::SetUp();
  }
};

TEST_F(OtherModeProxierTest, RetiresWhatItFindsOnceItsOwnIsInPlace) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  EXPECT_THAT(TextOf("other"), HasSubstr("services"));
  proxier_->MarkSynced();
  ready_.wait();
  EXPECT_EQ(TextOf("other"), "");
  EXPECT_THAT(kernel_.Text(), HasSubstr("10.96.0.1 . tcp . 80"));
}

class SlowProxierTest : public ProxierTest {
 protected:
  SlowProxierTest() { min_sync_period_ = std::chrono::seconds(1); }
};

// A thousand changes a second: one write a second, and after each the kernel is no older than that.
TEST_F(SlowProxierTest, FlappingEndpointsLagByOnePeriodAtMost) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->MarkSynced();
  ready_.wait();
  for (int second = 0; second < 5; ++second) {
    clock_.AwaitWaiters(1);
    int before;
    {
      MutexLock lock(kernel_.mutex);
      before = kernel_.attempts;
    }
    std::string last;
    for (int i = 0; i < 1000; ++i) {
      last = IpAddress::Parse("10.1.0.0")->Plus(second * 1000 + i).ToString();
      auto slice = MakeSlice(last);
      proxier_->OnSlice("default/web-1", &slice);
      clock_.Advance(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(kernel_.Await(Has("10.96.0.1 . tcp . 80 . 0 : " + last + " . 8080"))) << second;
    MutexLock lock(kernel_.mutex);
    EXPECT_EQ(kernel_.attempts, before + 1) << second;
  }
}

// Without a period between writes: what comes while one is under way is one more.
TEST_F(ProxierTest, FlappingEndpointsWaitForOneWrite) {
  auto service = MakeService("10.96.0.1");
  proxier_->OnService("default/web", &service);
  proxier_->MarkSynced();
  ready_.wait();
  auto flap = [&](int i) {
    auto slice = MakeSlice(IpAddress::Parse("10.1.0.0")->Plus(i).ToString());
    proxier_->OnSlice("default/web-1", &slice);
  };
  int before;
  {
    MutexLock lock(kernel_.mutex);
    kernel_.busy = true;
    before = kernel_.attempts;
  }
  flap(0);
  {
    MutexLock lock(kernel_.mutex);
    while (kernel_.attempts == before) kernel_.changed.wait(kernel_.mutex);
  }
  for (int i = 1; i <= 1000; ++i) flap(i);
  {
    MutexLock lock(kernel_.mutex);
    kernel_.busy = false;
    kernel_.changed.notify_all();
  }
  EXPECT_TRUE(kernel_.Await(Has("10.96.0.1 . tcp . 80 . 0 : 10.1.3.232 . 8080")));
  MutexLock lock(kernel_.mutex);
  EXPECT_EQ(kernel_.attempts, before + 2);
}

TEST_F(ProxierTest, ALeavingNodeIsNotEligible) {
  corev1::Node node;
  proxier_->OnNode(&node);
  EXPECT_TRUE(health_.Healthy());
  node.mutable_spec()->add_taints()->set_key("ToBeDeletedByClusterAutoscaler");
  proxier_->OnNode(&node);
  EXPECT_FALSE(health_.Healthy());
  node.mutable_spec()->clear_taints();
  proxier_->OnNode(&node);
  EXPECT_TRUE(health_.Healthy());
  proxier_->OnNode(nullptr);
  EXPECT_FALSE(health_.Healthy());
}

}  // namespace
}  // namespace keelson::proxy
