#include "lib/http/streaming/streaming_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <thread>

#include <boost/json.hpp>

#include "lib/base/file.h"
#include "lib/http/streaming/spdy_client.h"

namespace keelson::http {
namespace {

constexpr size_t kMaxStatus = 64 << 10, kPiece = 32 << 10;

std::string TextOf(const boost::json::object& object, std::string_view name) {
  const auto* found = object.if_contains({name.data(), name.size()});
  const auto* text = found ? found->if_string() : nullptr;
  return text ? std::string(text->data(), text->size()) : "";
}

// The cause "ExitCode" of a Status.
std::optional<int> ExitCause(const boost::json::object& status) {
  const auto* details = status.if_contains("details");
  const auto* causes =
      details && details->is_object() ? details->get_object().if_contains("causes") : nullptr;
  if (!causes || !causes->is_array()) return std::nullopt;
  for (const boost::json::value& cause : causes->get_array()) {
    if (!cause.is_object() || TextOf(cause.get_object(), "reason") != "ExitCode") continue;
    const std::string text = TextOf(cause.get_object(), "message");
    int code = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
    if (error == std::errc() && end == text.data() + text.size()) return code;
  }
  return std::nullopt;
}

class SpdyCommand final : public RemoteCommandClient {
 public:
  explicit SpdyCommand(std::unique_ptr<SpdyClient> link) : link_(std::move(link)) {}

  Result<> OpenStreams(const RemoteCommandStreams& streams) {
    auto open = [this](bool wanted, const char* type, uint32_t& id) -> Result<> {
      if (!wanted) return {};
      KEELSON_ASSIGN_OR_RETURN(id, link_->Open({{"streamtype", type}}));
      return {};
    };
    KEELSON_RETURN_IF_ERROR(open(true, "error", error_));
    KEELSON_RETURN_IF_ERROR(open(streams.in, "stdin", stdin_));
    KEELSON_RETURN_IF_ERROR(open(streams.out, "stdout", stdout_));
    KEELSON_RETURN_IF_ERROR(open(streams.err && !streams.tty, "stderr", stderr_));
    return open(streams.tty, "resize", resize_);
  }

  Result<int> Run(const std::function<void(bool, std::string_view)>& on_output) override {
    std::string status;
    bool out_open = stdout_ != 0, err_open = stderr_ != 0, error_open = true;
    auto on_data = [&](uint32_t id, std::string_view bytes, bool fin) {
      if (id == error_) {
        status.append(bytes.substr(0, kMaxStatus - std::min(kMaxStatus, status.size())));
        if (fin) error_open = false;
      } else if (id == stdout_ || id == stderr_) {
        if (!bytes.empty()) on_output(id == stderr_, bytes);
        if (fin) (id == stderr_ ? err_open : out_open) = false;
      }
    };
    while (out_open || err_open || error_open) {
      const Result<bool> more = link_->Pump(on_data);
      if (stopped_) return Error(Code::kCancelled, "stopped");
      if (!more && status.empty()) return more.error();
      if (!more || !*more) break;
    }
    link_->Close();
    // A server that goes without a word has lost the command.
    if (status.empty() && error_open) {
      return Error(Code::kUnavailable, "the connection to the container runtime is lost");
    }
    return ExitCodeOf(status);
  }

  Result<> SendInput(std::string_view bytes) override { return link_->Send(stdin_, bytes, false); }
  Result<> CloseInput() override { return link_->Send(stdin_, {}, true); }
  Result<> Resize(uint16_t columns, uint16_t rows) override {
    return link_->Send(
        resize_, R"({"Width":)" + std::to_string(columns) + R"(,"Height":)" + std::to_string(rows) + "}\n",
        false);
  }
  void Stop() override {
    stopped_ = true;
    link_->Close();
  }

 private:
  const std::unique_ptr<SpdyClient> link_;
  uint32_t error_ = 0, stdin_ = 0, stdout_ = 0, stderr_ = 0, resize_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

Result<std::unique_ptr<RemoteCommandClient>> RemoteCommandClient::Connect(
    const StreamingTarget& target, const RemoteCommandStreams& streams) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<SpdyClient> link, SpdyClient::Dial(target, "v4.channel.k8s.io"));
  auto command = std::make_unique<SpdyCommand>(std::move(link));
  KEELSON_RETURN_IF_ERROR(command->OpenStreams(streams));
  return std::unique_ptr<RemoteCommandClient>(std::move(command));
}

Result<int> ExitCodeOf(const std::string& status) {
  if (status.empty()) return 0;
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(status, error);
  const auto* object = error ? nullptr : parsed.if_object();
  if (!object) return Error(Code::kInternal, status);
  if (TextOf(*object, "status") == "Success") return 0;
  const std::string message = TextOf(*object, "message");
  if (TextOf(*object, "reason") != "NonZeroExitCode") {
    return Error(Code::kInternal, message.empty() ? status : message);
  }
  if (const auto code = ExitCause(*object)) return *code;
  return Error(Code::kInternal, "error stream protocol error: no exit code in " + status);
}

Result<> ForwardPort(const StreamingTarget& target, uint16_t port, int socket) {
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<SpdyClient> link,
                           SpdyClient::Dial(target, "portforward.k8s.io"));
  const std::string number = std::to_string(port);
  KEELSON_ASSIGN_OR_RETURN(const uint32_t error,
                           link->Open({{"streamtype", "error"}, {"port", number}, {"requestid", "0"}}));
  KEELSON_ASSIGN_OR_RETURN(const uint32_t data,
                           link->Open({{"streamtype", "data"}, {"port", number}, {"requestid", "0"}}));
  std::thread to_pod([&link, socket, data] {
    char piece[kPiece];
    for (;;) {
      const ssize_t got = ::recv(socket, piece, sizeof(piece), 0);
      const bool end = got <= 0;
      const std::string_view bytes(piece, end ? 0 : static_cast<size_t>(got));
      if (!link->Send(data, bytes, end) || end) return;
    }
  });
  std::string failure;
  bool data_open = true, written = true;
  auto on_data = [&](uint32_t id, std::string_view bytes, bool fin) {
    if (id == error) {
      failure.append(bytes.substr(0, kMaxStatus - std::min(kMaxStatus, failure.size())));
    } else if (id == data) {
      written = written && (bytes.empty() || WriteAll(socket, bytes, "forwarded connection"));
      if (fin) data_open = false;
    }
  };
  while (data_open && written && failure.empty()) {
    const Result<bool> more = link->Pump(on_data);
    if (!more || !*more) break;
  }
  // The pod has no more to say; what the peer still has to say ends when it closes its end.
  ::shutdown(socket, failure.empty() && written ? SHUT_WR : SHUT_RDWR);
  if (!failure.empty() || !written) link->Close();
  to_pod.join();
  link->Close();
  if (!failure.empty()) return Error(Code::kInternal, failure);
  return {};
}

}  // namespace keelson::http
