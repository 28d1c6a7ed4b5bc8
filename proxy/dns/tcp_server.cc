#include "proxy/dns/tcp_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <future>
#include <set>
#include <string>

namespace keelson::proxy::dns {
namespace {

constexpr int kBacklog = 128;
constexpr size_t kReadSize = 16 << 10;
constexpr size_t kMaxUnsent = 256 << 10;  // answers a client has not taken; no more questions are read then
constexpr std::chrono::milliseconds kAcceptAgain{100};  // when the process is out of descriptors

std::string Framed(std::string_view answer) {
  std::string out;
  out.reserve(2 + answer.size());
  Append16(out, static_cast<uint16_t>(answer.size()));
  out += answer;
  return out;
}

}  // namespace

struct TcpServer::State {
  struct Listener {
    UniqueFd fd;
    bool v4;
    std::unique_ptr<event::FdWatch> watch;
    std::unique_ptr<event::Timer> again;
  };
  State(Responder& r, std::shared_ptr<event::Loop> l, TcpOptions o)
      : responder(r), loop(std::move(l)), options(o) {}

  void Accept(Listener& listener);

  Responder& responder;
  const std::shared_ptr<event::Loop> loop;
  const TcpOptions options;
  std::vector<Listener> listeners;
  std::set<std::shared_ptr<Connection>> connections;  // on the loop
  std::vector<char> answer = std::vector<char>(kMaxTcpSize);
};

// Lives on the loop. The set of connections owns it until it is closed.
class TcpServer::Connection : public Asker, public std::enable_shared_from_this<Connection> {
 public:
  Connection(State& state, UniqueFd fd, bool v4)
      : state_(state), fd_(std::move(fd)), v4_(v4), watch_(*state.loop, fd_.get()), idle_(*state.loop) {}

  void Start() {
    Touch();
    AwaitMore();
  }

  bool tcp() const override { return true; }
  bool v4() const override { return v4_; }
  std::function<void(std::string_view)> Later() override {
    ++pending_;
    return [weak = weak_from_this(), loop = state_.loop](std::string_view answer) {
      loop->Post([weak, answer = std::string(answer)] {
        std::shared_ptr<Connection> self = weak.lock();
        if (!self || self->closed_) return;
        --self->pending_;
        self->Queue(answer);
        self->Proceed();
      });
    };
  }

 private:
  void Touch() {
    idle_.Start(state_.options.idle, [self = weak_from_this()] {
      if (auto connection = self.lock()) connection->Close();
    });
  }

  void Close() {
    if (std::exchange(closed_, true)) return;
    watch_.Cancel();
    idle_.Cancel();
    state_.connections.erase(shared_from_this());
  }

  bool Full() const { return pending_ >= state_.options.max_pending || unsent_.size() >= kMaxUnsent; }

  void AwaitMore() {
    if (reading_ || ended_ || Full()) return;
    reading_ = true;
    watch_.AwaitReadable([self = shared_from_this()] {
      self->reading_ = false;
      self->Read();
    });
  }

  void Read() {
    char bytes[kReadSize];
    ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return Close();
    if (size == 0) ended_ = true;
    if (size > 0) unread_.append(bytes, static_cast<size_t>(size));
    Proceed();
  }

  bool HasQuestion() const { return unread_.size() >= 2 && unread_.size() - 2 >= Get16(unread_, 0); }

  // Answers what has been read, sends what has been answered, and waits for what is missing.
  void Proceed() {
    auto keep = shared_from_this();
    do {
      if (!Answer()) return Close();
      Write();
    } while (!closed_ && !Full() && HasQuestion());
    if (closed_) return;
    // A client may close its side after its last question and still read the answers.
    if (ended_ && pending_ == 0 && unsent_.empty()) return Close();
    AwaitMore();
  }

  // False when the bytes are no DNS.
  bool Answer() {
    size_t at = 0;
    for (; !Full() && unread_.size() - at >= 2; Touch()) {
      size_t size = Get16(unread_, at);
      if (size < kHeaderSize) return false;
      if (unread_.size() - at < 2 + size) break;
      size_t answer =
          state_.responder.Handle(std::string_view(unread_).substr(at + 2, size), *this, state_.answer);
      if (answer > 0) Queue({state_.answer.data(), answer});
      at += 2 + size;
    }
    unread_.erase(0, at);
    return true;
  }

  void Queue(std::string_view answer) { unsent_ += Framed(answer); }

  void Write() {
    while (!unsent_.empty() && !writing_) {
      ssize_t sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        unsent_.erase(0, static_cast<size_t>(sent));
        Touch();
      } else if (errno == EAGAIN) {
        writing_ = true;
        watch_.AwaitWritable([self = shared_from_this()] {
          self->writing_ = false;
          self->Proceed();
        });
      } else if (errno != EINTR) {
        return Close();
      }
    }
  }

  State& state_;
  UniqueFd fd_;
  const bool v4_;
  event::FdWatch watch_;
  event::Timer idle_;
  std::string unread_, unsent_;
  size_t pending_ = 0;
  bool reading_ = false, writing_ = false, ended_ = false, closed_ = false;
};

void TcpServer::State::Accept(Listener& listener) {
  for (;;) {
    UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      if (connections.size() >= options.max_connections) continue;  // closes it
      auto connection = std::make_shared<Connection>(*this, std::move(fd), listener.v4);
      connections.insert(connection);
      connection->Start();
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      listener.again->Start(kAcceptAgain, [this, &listener] { Accept(listener); });
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  listener.watch->AwaitReadable([this, &listener] { Accept(listener); });
}

Result<std::unique_ptr<TcpServer>> TcpServer::Create(const std::vector<Listen>& addresses,
                                                     Responder& responder, std::shared_ptr<event::Loop> loop,
                                                     TcpOptions options) {
  auto state = std::make_shared<State>(responder, loop, options);
  for (const Listen& address : addresses) {
    KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, BindSocket(address, SOCK_STREAM));
    if (::listen(fd.get(), kBacklog) != 0) return ErrnoError("listen on " + address.ip.ToString());
    state->listeners.push_back({std::move(fd), address.ip.is_v4(), nullptr, nullptr});
  }
  loop->Post([state] {
    for (State::Listener& listener : state->listeners) {
      listener.watch = std::make_unique<event::FdWatch>(*state->loop, listener.fd.get());
      listener.again = std::make_unique<event::Timer>(*state->loop);
      state->Accept(listener);
    }
  });
  return std::unique_ptr<TcpServer>(new TcpServer(std::move(state)));
}

TcpServer::~TcpServer() {
  std::promise<void> done;
  state_->loop->Post([&] {
    state_->listeners.clear();
    state_->connections.clear();
    done.set_value();
  });
  done.get_future().wait();
}

std::vector<uint16_t> TcpServer::ports() const {
  std::vector<uint16_t> out;
  for (const auto& listener : state_->listeners) out.push_back(LocalPort(listener.fd.get()).value_or(0));
  return out;
}

}  // namespace keelson::proxy::dns
