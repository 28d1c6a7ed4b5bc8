#include "proxy/dns/exchange.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>

#include "lib/base/socket_address.h"

namespace keelson::proxy::dns {
namespace {

uint16_t RandomId() {
  uint16_t id = 0;
  // Sixteen bits never block once the kernel is up.
  while (::getrandom(&id, sizeof id, 0) != sizeof id) {
  }
  return id;
}

}  // namespace

Exchange::Exchange(event::Loop& loop, const Listen& server, Question question, Done done)
    : loop_(loop),
      server_(server),
      question_(std::move(question)),
      done_(std::move(done)),
      id_(RandomId()),
      timer_(loop),
      soon_(loop) {}

Exchange::~Exchange() = default;

std::unique_ptr<Exchange> Exchange::Start(event::Loop& loop, const Listen& server, Question question,
                                          std::chrono::milliseconds timeout, Done done) {
  std::unique_ptr<Exchange> out(new Exchange(loop, server, std::move(question), std::move(done)));
  Exchange& self = *out;
  self.timer_.Start(timeout,
                    [&self] { self.Finish(Error(Code::kTimeout, "DNS server did not answer in time")); });
  self.SendUdp();
  return out;
}

void Exchange::Fail(Error error) {
  soon_.Start(std::chrono::nanoseconds(0), [this, error] { Finish(error); });
}

// The callee may destroy this object.
void Exchange::Finish(Result<StoredAnswer> result) {
  timer_.Cancel();
  watch_.reset();
  fd_.Reset();
  Done done = std::move(done_);
  done(std::move(result));
}

Result<> Exchange::Open(int type) {
  watch_.reset();
  SocketAddress address(server_.ip, server_.port);
  fd_.Reset(::socket(address.get()->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return ErrnoError("open socket");
  // The kernel picks a random port; connected, it takes packets from this server alone.
  if (::connect(fd_.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS) {
    return ErrnoError("connect to DNS server " + server_.ip.ToString());
  }
  watch_ = std::make_unique<event::FdWatch>(loop_, fd_.get());
  return {};
}

void Exchange::SendUdp() {
  if (Result<> opened = Open(SOCK_DGRAM); !opened) return Fail(opened.error());
  std::string packet = QuestionPacket(question_, id_);
  if (::send(fd_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    return Fail(ErrnoError("send to DNS server " + server_.ip.ToString()));
  }
  AwaitUdp();
}

void Exchange::AwaitUdp() {
  watch_->AwaitReadable([this] { ReadUdp(); });
}

void Exchange::ReadUdp() {
  char bytes[4096];
  ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return AwaitUdp();
  if (size < 0) return Finish(ErrnoError("receive from DNS server " + server_.ip.ToString()));
  std::string_view reply(bytes, static_cast<size_t>(size));
  bool ours = reply.size() >= kHeaderSize && Get16(reply, 0) == id_;
  if (ours && IsTruncated(reply)) return ConnectTcp();
  // What is not the answer may be somebody's guess: the real one may still come.
  Result<StoredAnswer> answer = StoreAnswer(reply, question_, id_);
  if (!answer) return AwaitUdp();
  Finish(std::move(answer));
}

void Exchange::ConnectTcp() {
  if (Result<> opened = Open(SOCK_STREAM); !opened) return Finish(opened.error());
  std::string packet = QuestionPacket(question_, id_);
  out_.clear();
  Append16(out_, static_cast<uint16_t>(packet.size()));
  out_ += packet;
  watch_->AwaitWritable([this] { WriteTcp(); });
}

void Exchange::WriteTcp() {
  ssize_t sent = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    return Finish(ErrnoError("send to DNS server " + server_.ip.ToString()));
  }
  if (sent > 0) out_.erase(0, static_cast<size_t>(sent));
  if (!out_.empty()) return watch_->AwaitWritable([this] { WriteTcp(); });
  watch_->AwaitReadable([this] { ReadTcp(); });
}

void Exchange::ReadTcp() {
  char bytes[16384];
  ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
  if (size < 0 && errno != EAGAIN && errno != EINTR) {
    return Finish(ErrnoError("receive from DNS server " + server_.ip.ToString()));
  }
  if (size == 0) return Finish(Error(Code::kUnavailable, "DNS server closed the connection"));
  if (size > 0) in_.append(bytes, static_cast<size_t>(size));
  if (in_.size() < 2 || in_.size() - 2 < Get16(in_, 0)) {
    return watch_->AwaitReadable([this] { ReadTcp(); });
  }
  Finish(StoreAnswer(std::string_view(in_).substr(2, Get16(in_, 0)), question_, id_));
}

}  // namespace keelson::proxy::dns
