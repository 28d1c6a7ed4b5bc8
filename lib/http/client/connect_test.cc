// A name with the addresses of several servers: the resolver is this file's.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/mutex.h"
#include "lib/http/testing/fixture.h"

namespace {

// The certificate of the tests is good for it.
constexpr const char* kName = "api.default.svc";

std::vector<std::string>& Addresses() {
  static std::vector<std::string> addresses;
  return addresses;
}

}  // namespace

// Takes the place of the C library's. freeaddrinfo() takes a chain of its results.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** out) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool numeric = hints && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (!host || numeric || std::string(host) != kName) return real(host, service, hints, out);
  addrinfo wanted = *hints;
  wanted.ai_flags |= AI_NUMERICHOST;
  addrinfo** end = out;
  *out = nullptr;
  for (const std::string& address : Addresses()) {
    if (const int failed = real(address.c_str(), service, &wanted, end); failed != 0) return failed;
    while (*end) end = &(*end)->ai_next;
  }
  return 0;
}

namespace keelson::http {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::minutes kLong{1};

UniqueFd Bound(const std::string& address, uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  return fd;
}

// Carries the bytes of one connection, until it is frozen.
class Relay {
 public:
  Relay(const std::string& from, const std::string& to, uint16_t port)
      : listener_(Bound(from, port)), server_(Bound(from, 0)) {
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, to.c_str(), &at.sin_addr);
    EXPECT_EQ(connect(server_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  // Once this has returned, nothing passes.
  void Freeze() {
    thread_.request_stop();
    thread_.join();
  }
  size_t carried() const { return carried_.load(); }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd polled[] = {
          {client_ ? client_.get() : listener_.get(), POLLIN, 0},
          {server_.get(), static_cast<int16_t>(client_ ? POLLIN : 0), 0},
      };
      if (poll(polled, 2, 10) <= 0) continue;
      if (!client_) {
        client_.Reset(accept(listener_.get(), nullptr, nullptr));
        continue;
      }
      if (polled[0].revents != 0) Carry(client_, server_);
      if (polled[1].revents != 0) Carry(server_, client_);
    }
  }
  void Carry(const UniqueFd& from, const UniqueFd& to) {
    char bytes[65536];
    const ssize_t got = recv(from.get(), bytes, sizeof bytes, 0);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more = send(to.get(), bytes + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += more;
      carried_ += static_cast<size_t>(more);
    }
  }

  UniqueFd listener_, server_, client_;
  std::atomic<size_t> carried_{0};
  std::jthread thread_;
};

class SeveralAddressesTest : public ::testing::Test {
 protected:
  // All servers of a test have one port.
  void Serve(const std::string& address) {
    ServerOptions options;
    options.address = address;
    options.port = port_;
    options.tls = TlsOptions(pki_).tls;
    servers_.push_back(std::make_unique<RunningServer>(
        [address](std::shared_ptr<const ServerRequest>, std::shared_ptr<ResponseWriter> writer) {
          writer->Reply(200, {}, address);
        },
        std::move(options)));
    port_ = servers_.back()->port();
  }
  // Takes connections, and says nothing.
  void BeSilent(const std::string& address) {
    UniqueFd fd = Bound(address, port_);
    ASSERT_EQ(listen(fd.get(), 64), 0);
    silent_.push_back(std::move(fd));
  }
  // Over a connection of its own.
  Result<ClientResponse> Get() {
    ClientOptions options;
    options.base_url = std::string("https://") + kName + ":" + std::to_string(port_);
    options.tls.ca_pem = pki_.ca_pem();
    ClientRequest request;
    request.target = "/";
    return NewClient(std::move(options))->Do(request, kSoon);
  }
  std::string Who() {
    const Result<ClientResponse> response = Get();
    return response ? response->body : response.error().message();
  }

  crypto::TestPki pki_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::vector<UniqueFd> silent_;
};

TEST_F(SeveralAddressesTest, ClientsSpreadOverTheServers) {
  Serve("127.0.0.2");
  Serve("127.0.0.3");
  Addresses() = {"127.0.0.2", "127.0.0.3"};
  std::set<std::string> seen;
  for (int i = 0; i < 60; ++i) seen.insert(Who());
  EXPECT_THAT(seen, UnorderedElementsAre("127.0.0.2", "127.0.0.3"));
}

TEST_F(SeveralAddressesTest, OneThatRefusesIsPassedOver) {
  Serve("127.0.0.2");
  Addresses() = {"127.0.0.3", "127.0.0.4", "127.0.0.2"};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Who(), "127.0.0.2");
}

TEST_F(SeveralAddressesTest, OneThatIsSilentIsNotWaitedFor) {
  Serve("127.0.0.2");
  BeSilent("127.0.0.3");
  BeSilent("127.0.0.4");
  Addresses() = {"127.0.0.3", "127.0.0.4", "127.0.0.2"};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Who(), "127.0.0.2");
}

// A program that stands still: the kernel keeps its connection, and takes what is sent.
TEST_F(SeveralAddressesTest, OneThatStandsStillIsLeft) {
  Serve("127.0.0.2");
  Relay relay("127.0.0.3", "127.0.0.2", port_);
  Addresses() = {"127.0.0.3", "127.0.0.3"};
  ClientOptions options;
  options.base_url = std::string("https://") + kName + ":" + std::to_string(port_);
  options.tls.ca_pem = pki_.ca_pem();
  const std::unique_ptr<Client> client = NewClient(std::move(options));
  ClientRequest request;
  request.target = "/";
  ASSERT_TRUE(client->Do(request, kSoon));
  EXPECT_GT(relay.carried(), 0U);
  relay.Freeze();
  Addresses() = {"127.0.0.2", "127.0.0.2"};
  const Result<ClientResponse> response = client->Do(request, kLong);
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "127.0.0.2");
}

TEST_F(SeveralAddressesTest, TheErrorIsThatOfTheLast) {
  Serve("127.0.0.2");
  servers_.clear();
  Addresses() = {"127.0.0.2", "127.0.0.3"};
  const Result<ClientResponse> response = Get();
  ASSERT_FALSE(response);
  EXPECT_TRUE(response.error().Is(Code::kUnavailable));
  EXPECT_THAT(response.error().message(), HasSubstr("connect to api.default.svc:"));
  EXPECT_THAT(response.error().message(), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace keelson::http
