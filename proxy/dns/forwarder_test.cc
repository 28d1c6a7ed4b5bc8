#include "proxy/dns/forwarder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include "lib/base/socket_address.h"
#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using std::chrono::milliseconds;

const IpAddress kLocalhost = *IpAddress::Parse("127.0.0.1");

// A name server on one port, UDP and TCP. `answer` gives the reply to a question; empty: none.
class FakeServer {
 public:
  using Answer = std::function<std::string(std::string_view query, bool tcp)>;
  explicit FakeServer(Answer answer) : answer_(std::move(answer)) {
    // A port that is free for both: UDP's choice is tried until TCP has it, too.
    for (Result<UniqueFd> tcp = Error(Code::kInternal, ""); !tcp;) {
      udp_ = std::move(*BindSocket({kLocalhost, 0}, SOCK_DGRAM));
      port_ = *LocalPort(udp_.get());
      tcp = BindSocket({kLocalhost, port_}, SOCK_STREAM);
      if (tcp) tcp_ = std::move(*tcp);
    }
    EXPECT_EQ(::listen(tcp_.get(), 16), 0);
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }
  Listen where() const { return {kLocalhost, port_}; }
  int asked() const { return asked_; }

 private:
  void Run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      pollfd fds[] = {{udp_.get(), POLLIN, 0}, {tcp_.get(), POLLIN, 0}};
      ::poll(fds, 2, 20);
      char bytes[4096];
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      ssize_t got = ::recvfrom(udp_.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got > 0) {
        std::string reply = Ask({bytes, static_cast<size_t>(got)}, false);
        if (!reply.empty()) {
          ::sendto(udp_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
        }
      }
      UniqueFd peer(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) continue;
      std::string packet(2, '\0');
      ::recv(peer.get(), packet.data(), 2, MSG_WAITALL);
      packet.resize(Get16(packet, 0));
      ::recv(peer.get(), packet.data(), packet.size(), MSG_WAITALL);
      std::string reply = Ask(packet, true), framed;
      Append16(framed, static_cast<uint16_t>(reply.size()));
      framed += reply;
      ::send(peer.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
    }
  }
  std::string Ask(std::string_view packet, bool tcp) {
    Query query;
    Rcode rcode;
    ParseQuery(packet, query, rcode);
    if (query.type == kTypeHinfo) return "";  // a probe for loops
    ++asked_;
    return answer_(packet, tcp);
  }

  Answer answer_;
  UniqueFd udp_, tcp_;
  uint16_t port_ = 0;
  std::atomic<int> asked_{0};
  std::jthread thread_;
};

std::string OneAddress(std::string_view query, uint32_t ttl = 60, bool truncated = false) {
  return AnswerPacket(query, Rcode::kNoError, {{"www.example.com", kTypeA, ttl, "\x01\x02\x03\x04"}}, {},
                      truncated);
}

class ForwarderTest : public ::testing::Test {
 protected:
  void Start(ForwarderOptions options) {
    options.resolv_conf = "";
    forwarder_ = *Forwarder::Create(std::move(options), loop_, clock_);
  }
  std::future<Resolved> Ask(const std::string& name) {
    auto promise = std::make_shared<std::promise<Resolved>>();
    forwarder_->Resolve({*ParseName(name), kTypeA}, [promise](const Resolved& r) { promise->set_value(r); });
    return promise->get_future();
  }
  std::shared_ptr<event::Loop> loop_ = event::Loop::Create("dns");
  FakeClock clock_;
  std::unique_ptr<Forwarder> forwarder_;
};

TEST_F(ForwarderTest, AsksOnceAndRemembers) {
  FakeServer server([](std::string_view query, bool) { return OneAddress(query); });
  Start({.servers = {server.where()}});
  ASSERT_NE(Ask("www.example.com").get().answer, nullptr);
  clock_.Advance(std::chrono::seconds(10));
  Resolved again = Ask("www.example.com").get();
  EXPECT_EQ(again.age, std::chrono::seconds(10));
  EXPECT_EQ(server.asked(), 1);
}

TEST_F(ForwarderTest, JoinsEqualQuestions) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  FakeServer server([gone](std::string_view query, bool) {
    gone.wait();
    return OneAddress(query);
  });
  Start({.servers = {server.where()}});
  std::vector<std::future<Resolved>> all;
  for (int i = 0; i < 10; ++i) all.push_back(Ask("www.example.com"));
  std::promise<void> begun;
  loop_->Post([&] { begun.set_value(); });
  begun.get_future().wait();
  go.set_value();
  for (auto& one : all) EXPECT_NE(one.get().answer, nullptr);
  EXPECT_EQ(server.asked(), 1);
}

TEST_F(ForwarderTest, TurnsToTcpWhenCut) {
  FakeServer server([](std::string_view query, bool tcp) { return OneAddress(query, 60, !tcp); });
  Start({.servers = {server.where()}});
  EXPECT_NE(Ask("www.example.com").get().answer, nullptr);
  EXPECT_EQ(server.asked(), 2);
}

TEST_F(ForwarderTest, TurnsToAnotherServer) {
  FakeServer silent([](std::string_view, bool) { return ""; });
  FakeServer broken([](std::string_view query, bool) { return AnswerPacket(query, Rcode::kServFail, {}); });
  FakeServer good([](std::string_view query, bool) { return OneAddress(query); });
  Start({.servers = {silent.where(), broken.where(), good.where()}, .try_timeout = milliseconds(50)});
  Resolved out = Ask("www.example.com").get();
  ASSERT_NE(out.answer, nullptr);
  EXPECT_EQ(out.answer->rcode, Rcode::kNoError);
}

TEST_F(ForwarderTest, IgnoresForgedAnswers) {
  FakeServer server([](std::string_view query, bool) {
    std::string forged = OneAddress(query);
    Set16(forged.data(), static_cast<uint16_t>(Get16(forged, 0) + 1));
    return forged;
  });
  Start({.servers = {server.where()}, .try_timeout = milliseconds(50)});
  EXPECT_EQ(Ask("www.example.com").get().answer, nullptr);
}

TEST_F(ForwarderTest, GivesStaleAnswersWhenNobodyAnswers) {
  std::atomic<bool> up = true;
  FakeServer server([&](std::string_view query, bool) { return up ? OneAddress(query) : ""; });
  Start({.servers = {server.where()}, .try_timeout = milliseconds(50)});
  ASSERT_NE(Ask("www.example.com").get().answer, nullptr);
  up = false;
  clock_.Advance(std::chrono::minutes(5));
  Resolved stale = Ask("www.example.com").get();
  EXPECT_NE(stale.answer, nullptr);
  EXPECT_TRUE(stale.stale);
  EXPECT_EQ(Ask("other.example.com").get().answer, nullptr);
}

TEST_F(ForwarderTest, SendsStubDomainsElsewhere) {
  FakeServer node([](std::string_view query, bool) { return AnswerPacket(query, Rcode::kNxDomain, {}); });
  FakeServer stub([](std::string_view query, bool) { return OneAddress(query); });
  Start({.servers = {node.where()}, .stub_domains = {{"example.com", {stub.where()}}}});
  EXPECT_EQ(Ask("www.example.com").get().answer->rcode, Rcode::kNoError);
  EXPECT_EQ(Ask("www.example.org").get().answer->rcode, Rcode::kNxDomain);
  EXPECT_EQ(stub.asked(), 1);
  EXPECT_EQ(node.asked(), 1);
}

TEST_F(ForwarderTest, RefusesMoreThanItsLimit) {
  FakeServer silent([](std::string_view, bool) { return ""; });
  Start({.servers = {silent.where()}, .max_concurrent = 1, .try_timeout = milliseconds(200)});
  auto first = Ask("a.example.com");
  EXPECT_TRUE(Ask("b.example.com").get().refused);
  forwarder_.reset();
  EXPECT_EQ(first.get().answer, nullptr);  // the end answers those who wait
}

TEST_F(ForwarderTest, AsksNobodyWithoutServers) {
  Start({.servers = {{kLocalhost, 53}}, .own_ips = {kLocalhost}});
  EXPECT_EQ(Ask("www.example.com").get().answer, nullptr);
  EXPECT_FALSE(Forwarder::Create({.resolv_conf = "", .stub_domains = {{"a..b", {}}}}, loop_, clock_));
}

// A server that hands everything back to the forwarder, as a misled resolv.conf does.
TEST_F(ForwarderTest, FindsLoops) {
  std::promise<void> looped;
  std::atomic<int> seen = 0;
  UniqueFd socket = std::move(*BindSocket({kLocalhost, 0}, SOCK_DGRAM));
  Start({.servers = {{kLocalhost, *LocalPort(socket.get())}},
         .try_timeout = milliseconds(100),
         .probe_period = milliseconds(10)});
  for (; seen < 2;) {
    pollfd readable{socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&readable, 1, 10000), 1);
    char bytes[4096];
    ssize_t size = ::recv(socket.get(), bytes, sizeof bytes, 0);
    Query query;
    Rcode rcode;
    ASSERT_EQ(ParseQuery({bytes, static_cast<size_t>(size)}, query, rcode), Parsed::kQuery);
    if (query.type != kTypeHinfo) continue;
    std::promise<void> back;
    forwarder_->Resolve({Name(query.name()), query.type}, [&](const Resolved& r) {
      EXPECT_EQ(r.answer, nullptr);
      back.set_value();
    });
    back.get_future().wait();
    ++seen;
  }
  EXPECT_EQ(Ask("www.example.com").get().answer, nullptr);
  pollfd readable{socket.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 0);  // nobody was asked
}

}  // namespace
}  // namespace keelson::proxy::dns
