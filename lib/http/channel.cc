#include "lib/http/channel.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace keelson::http {
namespace {

constexpr size_t kReadSize = 32 << 10;
constexpr size_t kRecordSize = 16 << 10;
constexpr size_t kJoinBelow = 4 << 10;  // a larger slice at the front is encrypted where it lies
constexpr int kReadsATurn = 8;          // then other connections get theirs
constexpr auto kLinger = std::chrono::milliseconds(500);
constexpr size_t kDiscard = 4 << 20;  // of what comes meanwhile; a peer that sends on and on is read no more
// The text of Go's servers, which users search for.
constexpr const char* kPlainHttp =
    "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

}  // namespace

Channel::Channel(std::shared_ptr<event::Loop> loop, UniqueFd fd, std::unique_ptr<crypto::TlsStream> tls)
    : loop_(std::move(loop)), fd_(std::move(fd)), tls_(std::move(tls)) {}

Channel::~Channel() {
  if (!watch_ && !timer_) return;
  // The last owner may be on any thread; the watch lives on the loop.
  if (loop_->OnLoopThread()) return;
  loop_->Post([watch = std::shared_ptr<event::FdWatch>(std::move(watch_)),
               timer = std::shared_ptr<event::Timer>(std::move(timer_)),
               fd = std::make_shared<UniqueFd>(std::move(fd_)),
               tls = std::shared_ptr<crypto::TlsStream>(std::move(tls_))] {});
}

void Channel::Handshake(std::chrono::milliseconds timeout, std::function<void(Result<>)> done) {
  watch_ = std::make_unique<event::FdWatch>(*loop_, fd_.get());
  timer_ = std::make_unique<event::Timer>(*loop_);
  if (!tls_) return done({});
  handshake_done_ = std::move(done);
  timer_->Start(timeout, [self = shared_from_this()] {
    self->EndHandshake(Error(Code::kTimeout, "TLS handshake: timed out"));
  });
  StepHandshake();
}

void Channel::StepHandshake() {
  if (closed_) return;
  Io io = tls_->Handshake();
  if (io == Io::kDone) return EndHandshake({});
  auto again = [self = shared_from_this()] { self->StepHandshake(); };
  if (io == Io::kWantRead) return watch_->AwaitReadable(again);
  if (io == Io::kWantWrite) return watch_->AwaitWritable(again);
  using PlainHttp = crypto::TlsStream::PlainHttp;
  const PlainHttp plain_http = tls_->plain_http();
  std::string text = "TLS handshake: " + tls_->error_text();
  if (plain_http == PlainHttp::kRequests) {
    tls_.reset();
    Send(kPlainHttp);
    CloseGracefully();
  }
  // People look for these words.
  if (plain_http == PlainHttp::kResponds) text = "http: server gave HTTP response to HTTPS client";
  EndHandshake(Error(Code::kUnavailable, text));
}

void Channel::EndHandshake(Result<> result) {
  if (!handshake_done_) return;
  auto done = std::exchange(handshake_done_, nullptr);
  if (!lingering_) timer_->Cancel();
  if (!result && !lingering_) Close();
  done(std::move(result));
}

void Channel::SetReceiver(std::shared_ptr<Receiver> receiver) {
  receiver_ = std::move(receiver);
  ResumeReading();
}

void Channel::ResumeReading() {
  paused_ = false;
  if (reading_ || closed_ || read_ended_) return;
  reading_ = true;
  // Not at once: the caller may be inside OnData. TLS may hold bytes that the socket no longer shows.
  loop_->Post([self = shared_from_this()] { self->Readable(); });
}

void Channel::AwaitReadable() {
  reading_ = true;
  watch_->AwaitReadable([self = shared_from_this()] { self->Readable(); });
}

void Channel::Readable() {
  reading_ = false;
  // On the heap: every thread of the program has a copy of what is thread_local itself.
  static thread_local const auto buffer = std::make_unique<char[]>(kReadSize);
  auto keep = shared_from_this();
  for (int turn = 0; !closed_ && !read_ended_ && !paused_; ++turn) {
    if (turn == kReadsATurn) {
      reading_ = true;
      loop_->Post([self = shared_from_this()] { self->Readable(); });
      return;
    }
    size_t count = 0;
    switch (ReadSome(buffer.get(), kReadSize, count)) {
      case Io::kDone:
        if (lingering_) {
          discarded_ += count;
          if (discarded_ > kDiscard) return;  // the timer closes
          break;
        }
        if (auto receiver = receiver_) receiver->OnData({buffer.get(), count});
        break;
      case Io::kWantRead:
        return AwaitReadable();
      case Io::kWantWrite:
        reading_ = read_wants_write_ = true;
        return AwaitWritable();
      case Io::kEnd:
        return ReadEnded(nullptr);
      case Io::kFailed:
        return Failed(Broken());
    }
  }
}

Channel::Io Channel::ReadSome(char* buffer, size_t size, size_t& count) {
  if (tls_) return tls_->Read(buffer, size, count);
  ssize_t n;
  do n = recv(fd_.get(), buffer, size, 0);
  while (n < 0 && errno == EINTR);
  if (n > 0) count = static_cast<size_t>(n);
  if (n >= 0) return n ? Io::kDone : Io::kEnd;
  last_errno_ = errno;
  return errno == EAGAIN ? Io::kWantRead : Io::kFailed;
}

Error Channel::Broken() const {
  if (tls_ && !tls_->error_number()) return Error(Code::kUnavailable, "connection: " + tls_->error_text());
  const int errnum = tls_ ? tls_->error_number() : last_errno_;
  return Error(Code::kUnavailable, Error::FromErrno(errnum, "connection").message(), errnum);
}

void Channel::ReadEnded(const Error* failure) {
  if (read_ended_) return;
  read_ended_ = true;
  if (lingering_ && queued() == 0) return Close();
  if (auto receiver = receiver_) receiver->OnEnd(failure);
}

void Channel::Failed(const Error& error) {
  if (write_failed_) return;
  write_failed_ = read_ended_ = true;
  out_.clear();
  queued_ = 0;
  if (lingering_) return Close();
  if (auto receiver = receiver_) receiver->OnEnd(&error);
}

void Channel::Send(std::string bytes) { Send(std::make_shared<const std::string>(std::move(bytes))); }

void Channel::Send(std::shared_ptr<const std::string> owner, size_t offset, size_t size) {
  if (closed_ || write_failed_ || shutdown_done_ || size == 0) return;
  queued_.fetch_add(size, std::memory_order_relaxed);
  out_.push_back({std::move(owner), offset, size});
}

void Channel::Flush() {
  if (closed_ || writing_ || flushing_) return;
  auto keep = shared_from_this();
  flushing_ = true;  // OnDrained may send more: the loop takes it, without recursion
  do {
    Io io = Io::kDone;
    while (queued() > 0 && io == Io::kDone) io = WriteSome();
    if (io == Io::kWantWrite || io == Io::kWantRead) {
      AwaitWritable();
      break;
    }
    if (io != Io::kDone) {
      flushing_ = false;
      return Failed(Broken());
    }
    QueueEmpty();
  } while (queued() > 0 && !closed_);
  flushing_ = false;
}

void Channel::AwaitWritable() {
  writing_ = true;
  watch_->AwaitWritable([self = shared_from_this()] {
    self->writing_ = false;
    if (std::exchange(self->read_wants_write_, false)) self->Readable();
    self->Flush();
  });
}

Channel::Io Channel::WriteSome() { return tls_ ? WriteTls() : WritePlain(); }

Channel::Io Channel::WritePlain() {
  iovec parts[64];
  int count = 0;
  for (const Slice& slice : out_) {
    parts[count++] = {const_cast<char*>(slice.owner->data() + slice.offset), slice.size};
    if (count == 64) break;
  }
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t n;
  do n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    last_errno_ = errno;
    return errno == EAGAIN ? Io::kWantWrite : Io::kFailed;
  }
  Consume(static_cast<size_t>(n));
  queued_.fetch_sub(static_cast<size_t>(n), std::memory_order_relaxed);
  return Io::kDone;
}

Channel::Io Channel::WriteTls() {
  // A write that has to be repeated must offer the same bytes: record_ stays as it is until written.
  if (record_offset_ == record_.size() && out_.front().size < kJoinBelow) {
    record_.clear();
    record_offset_ = 0;
    while (!out_.empty() && record_.size() < kRecordSize) {
      const Slice& front = out_.front();
      size_t taken = std::min(kRecordSize - record_.size(), front.size);
      record_.append(*front.owner, front.offset, taken);
      Consume(taken);
    }
  }
  bool joined = record_offset_ < record_.size();
  const char* data =
      joined ? record_.data() + record_offset_ : out_.front().owner->data() + out_.front().offset;
  size_t size = joined ? record_.size() - record_offset_ : out_.front().size;
  size_t written = 0;
  if (Io io = tls_->Write({data, size}, written); io != Io::kDone) return io;
  queued_.fetch_sub(written, std::memory_order_relaxed);
  if (!joined) {
    Consume(written);
    return Io::kDone;
  }
  record_offset_ += written;
  if (record_offset_ == record_.size()) {
    std::string().swap(record_);
    record_offset_ = 0;
  }
  return Io::kDone;
}

void Channel::Consume(size_t count) {
  while (count > 0) {
    Slice& front = out_.front();
    size_t taken = std::min(count, front.size);
    front.offset += taken;
    front.size -= taken;
    count -= taken;
    if (front.size == 0) out_.pop_front();
  }
}

void Channel::QueueEmpty() {
  if (out_.empty()) std::deque<Slice>().swap(out_);
  if (shutdown_wanted_ && !shutdown_done_) FinishShutdown();
  if (lingering_ && read_ended_) return Close();
  if (auto receiver = receiver_) receiver->OnDrained();
}

void Channel::FinishShutdown() {
  shutdown_done_ = true;
  if (tls_) tls_->Shutdown();
  // After close_notify the peer may still answer; a plain socket says the same by FIN.
  if (!tls_ || lingering_) shutdown(fd_.get(), SHUT_WR);
}

void Channel::ShutdownWrite() {
  shutdown_wanted_ = true;
  Flush();
}

void Channel::CloseGracefully() {
  if (closed_ || lingering_) return;
  lingering_ = true;
  receiver_ = nullptr;
  shutdown_wanted_ = true;
  timer_->Start(kLinger, [self = shared_from_this()] {
    // A slow reader may need longer for what is queued, as long as it moves.
    if (self->queued() == 0) return self->Close();
    self->timer_->Start(kLinger * 20, [self] { self->Close(); });
  });
  Flush();
  if (write_failed_) return Close();
  ResumeReading();
}

void Channel::Close() {
  if (closed_) return;
  closed_ = true;
  if (timer_) timer_->Cancel();
  if (tls_ && !shutdown_done_ && !write_failed_ && !handshake_done_) tls_->Shutdown();
  watch_.reset();
  fd_.Reset();
  out_.clear();
  std::string().swap(record_);
  record_offset_ = 0;
  queued_ = 0;
  // Not at once: the caller may be the receiver itself.
  if (receiver_) loop_->Post([receiver = std::move(receiver_)] {});
  receiver_ = nullptr;
}

}  // namespace keelson::http
