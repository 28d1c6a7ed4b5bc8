#include "ctl/cri/command_stream.h"

#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "ctl/cri/terminal.h"
#include "lib/base/file.h"
#include "lib/http/streaming/streaming_client.h"

namespace keelson::ctl {
namespace {

// Standard input to the command, on a thread of its own.
class Input {
 public:
  Input(http::RemoteCommandClient& command, const CommandStream& stream)
      : command_(command), stream_(stream) {
    if (stream.tty) Resize();
    thread_ = std::thread([this] { Run(); });
  }
  ~Input() {
    reader_.Stop();
    thread_.join();
  }
  bool detached() const { return detached_; }

 private:
  void Resize() {
    const TerminalSize size = SizeOfTerminal();
    if (size.columns == 0) return;
    resize_first_ = size;
  }
  void Run() {
    InputReader::Events events;
    events.on_input = [this](std::string_view bytes) {
      if (!stream_.tty) return command_.SendInput(bytes).has_value();
      const std::string kept = keys_.Filter(bytes);
      const bool sent = kept.empty() || command_.SendInput(kept).has_value();
      if (!keys_.detached()) return sent;
      detached_ = true;
      command_.Stop();
      return false;
    };
    events.on_end = [this] { (void)command_.CloseInput(); };
    if (stream_.tty) {
      if (resize_first_) (void)command_.Resize(resize_first_->columns, resize_first_->rows);
      events.on_resize = [this] {
        const TerminalSize size = SizeOfTerminal();
        if (size.columns != 0) (void)command_.Resize(size.columns, size.rows);
      };
    }
    reader_.Run(events, stream_.input);
  }

  http::RemoteCommandClient& command_;
  const CommandStream& stream_;
  InputReader reader_;
  DetachKeys keys_;
  std::optional<TerminalSize> resize_first_;
  std::atomic<bool> detached_{false};
  std::thread thread_;
};

}  // namespace

Result<> CheckStream(const CommandStream& stream) {
  if (stream.transport != "spdy") {
    return Error(Code::kInvalid, "transport \"" + stream.transport + "\": nodectl has spdy alone");
  }
  if (stream.tty && !stream.input) {
    return Error(Code::kInvalid, "a terminal needs input: use -i with -t");
  }
  if (stream.tls_certificate.empty() != stream.tls_key.empty()) {
    return Error(Code::kInvalid, "both flags --tls-cert and --tls-key are required for TLS streaming");
  }
  return {};
}

Result<crypto::TlsClientOptions> TlsOf(const CommandStream& stream, const std::string& url) {
  crypto::TlsClientOptions tls;
  if (!url.starts_with("https://")) return tls;
  if (stream.tls_ca.empty()) {
    return Error(Code::kInvalid,
                 "the runtime streams over TLS: --tls-ca must name the CA of its certificate");
  }
  tls.server_name = stream.tls_server_name;
  KEELSON_ASSIGN_OR_RETURN(tls.ca_pem, ReadFile(stream.tls_ca));
  if (!stream.tls_key.empty()) {
    KEELSON_ASSIGN_OR_RETURN(tls.certificate_pem, ReadFile(stream.tls_certificate));
    KEELSON_ASSIGN_OR_RETURN(tls.key_pem, ReadFile(stream.tls_key));
  }
  return tls;
}

Result<int> RunStream(const CommandStream& stream, const std::string& url) {
  http::StreamingTarget target;
  target.url = url;
  KEELSON_ASSIGN_OR_RETURN(target.tls, TlsOf(stream, url));
  std::optional<RawTerminal> raw;
  if (stream.tty) {
    KEELSON_ASSIGN_OR_RETURN(RawTerminal entered, RawTerminal::Enter());
    raw.emplace(std::move(entered));
  }
  http::RemoteCommandStreams streams;
  streams.in = stream.input;
  streams.out = true;
  streams.err = !stream.tty;
  streams.tty = stream.tty;
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<http::RemoteCommandClient> command,
                           http::RemoteCommandClient::Connect(target, streams));
  std::optional<Input> input;
  if (stream.input) input.emplace(*command, stream);
  Result<int> code = command->Run([&command](bool is_stderr, std::string_view bytes) {
    if (!WriteAll(is_stderr ? STDERR_FILENO : STDOUT_FILENO, bytes, "output")) command->Stop();
  });
  if (input && input->detached()) return 0;
  return code;
}

}  // namespace keelson::ctl
