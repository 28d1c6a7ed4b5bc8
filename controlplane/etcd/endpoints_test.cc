// A member that hangs: its connections stay, and nothing comes. A relay before a real etcd stands for it.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/endpoints.h"
#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/base/fd.h"
#include "lib/base/mutex.h"
#include "lib/base/socket_address.h"
#include "lib/base/testing/eventually.h"

namespace keelson::etcd {
namespace {

constexpr std::chrono::minutes kLong{2};

// Carries bytes between its port and another on the loopback address, until it is frozen.
class Relay {
 public:
  explicit Relay(uint16_t to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    SocketAddress any(*IpAddress::Parse("127.0.0.1"), 0);
    EXPECT_EQ(bind(listener_.get(), any.get(), any.size()), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    sockaddr_in name{};
    socklen_t size = sizeof name;
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    url_ = "https://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }
  const std::string& url() const { return url_; }
  // Once this has returned true, nothing passes.
  void Freeze(bool frozen) {
    MutexLock lock(mutex_);
    frozen_ = frozen;
  }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
      for (const auto& [a, b] : pairs_) {
        polled.push_back({a.get(), POLLIN, 0});
        polled.push_back({b.get(), POLLIN, 0});
      }
      if (frozen()) polled.clear();  // only waits
      const int ready = poll(polled.data(), polled.size(), 10);
      MutexLock lock(mutex_);
      if (ready <= 0 || frozen_) continue;
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        auto& [a, b] = pairs_[(i - 1) / 2];
        if (!Carry(i % 2 == 1 ? a : b, i % 2 == 1 ? b : a)) a.Reset(), b.Reset();
      }
      std::erase_if(pairs_, [](const auto& pair) { return !pair.first; });
      if (polled[0].revents != 0) Accept();
    }
  }
  bool frozen() {
    MutexLock lock(mutex_);
    return frozen_;
  }
  void Accept() {
    UniqueFd client(accept(listener_.get(), nullptr, nullptr)), server(socket(AF_INET, SOCK_STREAM, 0));
    SocketAddress target(*IpAddress::Parse("127.0.0.1"), to_);
    if (client && connect(server.get(), target.get(), target.size()) == 0) {
      pairs_.emplace_back(std::move(client), std::move(server));
    }
  }
  static bool Carry(const UniqueFd& from, const UniqueFd& to) {
    if (!from || !to) return false;
    char bytes[65536];
    const ssize_t got = recv(from.get(), bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more = send(to.get(), bytes + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    return true;
  }

  const uint16_t to_;
  UniqueFd listener_;
  std::string url_;
  Mutex mutex_;
  bool frozen_ KEELSON_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs_;
  std::jthread thread_;
};

class EndpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    etcd_ = std::make_unique<TestEtcd>();
    ClientOptions options = etcd_->supervisor().tls_client_options();
    const std::string direct = options.endpoints.at(0);
    const auto port = static_cast<uint16_t>(std::stoi(direct.substr(direct.rfind(':') + 1)));
    options.endpoints.clear();
    for (auto& relay : relays_) {
      relay = std::make_unique<Relay>(port);
      options.endpoints.push_back(relay->url());
    }
    options.timeout = kLong;  // no call ends by its own deadline
    client_ = std::make_unique<Client>(options);
  }
  static Limits Patient() { return {std::chrono::steady_clock::now() + kLong, {}}; }

  std::unique_ptr<TestEtcd> etcd_;
  std::array<std::unique_ptr<Relay>, 2> relays_;
  std::unique_ptr<Client> client_;
};

TEST_F(EndpointsTest, CallsLeaveAMemberThatHangs) {
  ASSERT_TRUE(client_->PutIf("/a", "1", 0, 0, Patient()));
  relays_[0]->Freeze(true);
  // Its outcome is unknown, so it is not repeated.
  Result<TxnResult> lost = client_->PutIf("/b", "1", 0, 0, Patient());
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().Is(Code::kUnavailable)) << lost.error().message();
  Result<TxnResult> next = client_->PutIf("/c", "1", 0, 0, Patient());
  EXPECT_TRUE(next) << next.error().message();
  EXPECT_TRUE(client_->Revision(Patient()));
}

TEST_F(EndpointsTest, ReadsAreRepeatedElsewhere) {
  ASSERT_TRUE(client_->PutIf("/a", "1", 0, 0, Patient()));
  relays_[0]->Freeze(true);
  Result<RangeResult> read = client_->Range("/a", {}, Patient());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->kvs.size(), 1U);
}

TEST_F(EndpointsTest, WatchesEnd) {
  ASSERT_TRUE(client_->Revision(Patient()));
  Error ended = client_->Watch(
      "/", "0", 1, [&] { relays_[0]->Freeze(true); }, [](WatchBatch) {}, {});
  EXPECT_TRUE(ended.Is(Code::kUnavailable)) << ended.message();
  std::stop_source stop;
  ended = client_->Watch(
      "/", "0", 1, [&] { stop.request_stop(); }, [](WatchBatch) {}, stop.get_token());
  EXPECT_TRUE(ended.Is(Code::kCancelled)) << "the other member serves it";
}

TEST_F(EndpointsTest, AMemberThatComesBackIsUsedAgain) {
  relays_[0]->Freeze(true);
  ASSERT_TRUE(client_->Revision(Patient()));
  relays_[0]->Freeze(false);
  relays_[1]->Freeze(true);
  ASSERT_TRUE(client_->Revision(Patient()));
}

class EndpointTest : public testing::Test {
 protected:
  // How a call ends whose context was cancelled.
  static std::string EndOf(const Endpoint::Use& use) {
    const Result<> done = use.Done(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled"), "etcd txn");
    return done ? "" : done.error().message();
  }
  static SteadyTime Now() { return std::chrono::steady_clock::now(); }
  // Probes go on until what waits for the leader before is cancelled.
  bool Cancelled(const Endpoint::Use& use) {
    return Eventually([&] {
      endpoint_.Answered(2, 6);
      return EndOf(use).find("another leader") != std::string::npos;
    });
  }
  Endpoint endpoint_{"http://127.0.0.1:1", {}};
};

TEST_F(EndpointTest, WhatTheLeaderBeforeHadIsGivenUp) {
  endpoint_.Answered(1, 5);
  Endpoint::Use before(endpoint_, kLong, {}), stream(endpoint_, std::chrono::milliseconds(0), {});
  endpoint_.Answered(1, 5);
  EXPECT_EQ(EndOf(before), "etcd txn: cancelled") << "nothing has changed";
  endpoint_.Answered(2, 6);
  EXPECT_TRUE(endpoint_.InDoubt());
  Endpoint::Use after(endpoint_, kLong, {});
  EXPECT_TRUE(Cancelled(before));
  EXPECT_TRUE(before.IsOfLeader(grpc::Status::CANCELLED));
  EXPECT_TRUE(endpoint_.healthy());
  EXPECT_EQ(EndOf(after), "etcd txn: cancelled");
  EXPECT_FALSE(after.IsOfLeader(grpc::Status::CANCELLED));
  EXPECT_EQ(EndOf(stream), "etcd txn: cancelled");
}

TEST_F(EndpointTest, AnElectionIsNoReasonToLeaveAMember) {
  endpoint_.Answered(1, 5);
  endpoint_.Answered(0, 6);
  EXPECT_TRUE(endpoint_.healthy());
  EXPECT_TRUE(endpoint_.InDoubt());
  Endpoint::Use use(endpoint_, kLong, {});
  EXPECT_TRUE(Eventually([&] {
    endpoint_.Answered(0, 6);
    return !endpoint_.healthy();
  })) << "but a member that stays without a leader has lost the others";
  EXPECT_NE(EndOf(use).find("does not answer"), std::string::npos);
  endpoint_.Answered(1, 7);
  EXPECT_TRUE(endpoint_.healthy());
}

// A call may have begun when there was no better one.
TEST_F(EndpointTest, WhatWaitsForASilentMemberIsGivenUpEachTime) {
  for (int round = 0; round < 3; ++round) {
    Endpoint::Use use(endpoint_, kLong, {});
    EXPECT_EQ(EndOf(use), "etcd txn: cancelled");
    const SteadyTime asked = Now();
    Endpoint::Use later(endpoint_, kLong, {});
    endpoint_.NotAnswered(asked);
    EXPECT_NE(EndOf(use).find("does not answer"), std::string::npos) << round;
    // At first all that uses it ends.
    EXPECT_EQ(EndOf(later).find("does not answer") == std::string::npos, round > 0);
    EXPECT_FALSE(endpoint_.answers());
  }
  endpoint_.Answered(0, 6);
  EXPECT_TRUE(endpoint_.answers());
}

TEST_F(EndpointTest, EtcdTellsOfItsLeader) {
  Endpoint::Use use(endpoint_, kLong, {});
  const auto unavailable = [](const char* text) { return grpc::Status(grpc::StatusCode::UNAVAILABLE, text); };
  EXPECT_TRUE(use.IsOfLeader(unavailable("etcdserver: leader changed")));
  EXPECT_TRUE(
      use.IsOfLeader(unavailable("etcdserver: request timed out, possibly due to previous leader failure")));
  EXPECT_FALSE(use.IsOfLeader(unavailable("etcdserver: request timed out")));
  EXPECT_FALSE(use.IsOfLeader(unavailable("etcdserver: no leader")));
}

// Nothing listens at the first endpoint.
TEST_F(EndpointsTest, AnEndpointThatRefusesIsPassedOver) {
  ClientOptions options = etcd_->supervisor().tls_client_options();
  options.endpoints.insert(options.endpoints.begin(), "https://127.0.0.1:1");
  Client client(options);
  EXPECT_TRUE(client.PutIf("/refused", "1", 0, 0, Patient()));
}

}  // namespace
}  // namespace keelson::etcd
