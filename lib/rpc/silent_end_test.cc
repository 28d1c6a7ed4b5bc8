// A server that dies in the middle of a call may end its stream without a status.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "lib/base/fd.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/etcd.grpc.pb.h"

namespace keelson::rpc {
namespace {

enum class Ending { kHeadersAlone, kEmptyData, kReset };

// Frames of HTTP/2 (RFC 9113).
constexpr char kData = 0, kHeaders = 1, kReset = 3, kSettings = 4;
constexpr char kEndStream = 1, kAck = 1, kEndHeaders = 4;
std::string Frame(char type, char flags, char stream, const std::string& payload) {
  return std::string{0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream} + payload;
}

// Answers one call, in one way.
class DyingServer {
 public:
  explicit DyingServer(Ending ending) : ending_(ending) {
    char dir[] = "/tmp/keelson-rpc-XXXXXX";
    path_ = std::string(mkdtemp(dir)) + "/s";
    listener_.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path_.copy(at.sun_path, sizeof at.sun_path - 1);
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) abort();
    if (listen(listener_.get(), 8) != 0) abort();
    thread_ = std::thread([this] { Serve(); });
  }
  ~DyingServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.size() - 2).c_str());
  }
  const std::string& path() const { return path_; }

 private:
  void Serve() {
    for (;;) {
      const UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
      if (!peer) return;
      Answer(peer.get());
    }
  }
  static std::string ReadExactly(int fd, size_t size) {
    std::string out(size, '\0');
    for (size_t have = 0; have < size;) {
      const ssize_t got = read(fd, out.data() + have, size - have);
      if (got <= 0) return "";
      have += static_cast<size_t>(got);
    }
    return out;
  }
  static void Send(int fd, const std::string& bytes) { (void)!write(fd, bytes.data(), bytes.size()); }

  void Answer(int fd) const {
    constexpr size_t kPreface = 24, kHead = 9;
    if (ReadExactly(fd, kPreface).empty()) return;
    Send(fd, Frame(kSettings, 0, 0, ""));
    for (;;) {
      const std::string head = ReadExactly(fd, kHead);
      if (head.empty()) return;
      const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(head[i])); };
      const size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
      if (size > 0 && ReadExactly(fd, size).empty()) return;
      if (head[3] == kSettings && head[4] == 0) Send(fd, Frame(kSettings, kAck, 0, ""));
      if (head[3] == kHeaders) End(fd, head[8]);
    }
  }
  void End(int fd, char stream) const {
    // :status 200, content-type (RFC 7541).
    const std::string headers = std::string("\x88\x5f\x10") + "application/grpc";
    const bool alone = ending_ == Ending::kHeadersAlone;
    Send(fd, Frame(kHeaders, static_cast<char>(kEndHeaders | (alone ? kEndStream : 0)), stream, headers));
    if (ending_ == Ending::kEmptyData) Send(fd, Frame(kData, kEndStream, stream, ""));
    if (ending_ == Ending::kReset) Send(fd, Frame(kReset, 0, stream, std::string(4, '\0')));
  }

  const Ending ending_;
  std::string path_;
  UniqueFd listener_;
  std::thread thread_;
};

class SilentEndTest : public testing::TestWithParam<Ending> {};

TEST_P(SilentEndTest, IsAnErrorOfTheCall) {
  const DyingServer server(GetParam());
  auto kv = etcdserverpb::KV::NewStub(UnixChannel(server.path()));
  etcdserverpb::RangeRequest request;
  etcdserverpb::RangeResponse reply;
  Call call(std::chrono::seconds(30));
  const Result<> done = call.Done(kv->Range(call.context(), request, &reply), "range");
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().code(), Code::kTimeout) << done.error().message();
}

INSTANTIATE_TEST_SUITE_P(All, SilentEndTest,
                         testing::Values(Ending::kHeadersAlone, Ending::kEmptyData, Ending::kReset));

}  // namespace
}  // namespace keelson::rpc
