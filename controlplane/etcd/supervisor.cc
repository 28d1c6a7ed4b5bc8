#include "controlplane/etcd/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "controlplane/etcd/child.h"
#include "lib/base/file.h"
#include "lib/base/free_port.h"
#include "lib/base/log.h"

namespace keelson::etcd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstBackoff{100}, kLastBackoff{10000};
constexpr seconds kStable{60};         // a child that lived this long resets the back-off
constexpr seconds kStopPatience{10};   // between SIGTERM and SIGKILL
constexpr seconds kSilentPatience{2};  // the same, for an etcd that hangs
constexpr int kMaxFirstFailures = 5;
constexpr int kClientPort = 2379, kPeerPort = 2380;  // etcd's own
constexpr const char* kSocket = "etcd:0";

// Makes a stop request visible to poll().
class StopFd {
 public:
  explicit StopFd(std::stop_token stop)
      : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), on_stop_(std::move(stop), Wake{fd_.get()}) {}
  int get() const { return fd_.get(); }

 private:
  struct Wake {
    int fd;
    void operator()() const { eventfd_write(fd, 1); }
  };
  UniqueFd fd_;
  std::stop_callback<Wake> on_stop_;
};

// True when `fd` became readable; `stop_fd` (or -1) ends the wait too.
bool AwaitReadable(int fd, int stop_fd, milliseconds timeout) {
  pollfd fds[2] = {{fd, POLLIN, 0}, {stop_fd, POLLIN, 0}};
  poll(fds, 2, timeout.count() < 0 ? -1 : static_cast<int>(timeout.count()));
  return fds[0].revents != 0;
}

std::string UrlAt(const std::string& address, int port) {
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(v6 ? "https://[{}]:{}" : "https://{}:{}"),
                     address.empty() ? "127.0.0.1" : address, port);
}

std::string LastLines(const std::string& path) {
  constexpr size_t kShown = 1500;
  Result<std::string> text = ReadFile(path);
  if (!text) return "";
  return text->size() > kShown ? text->substr(text->size() - kShown) : *text;
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::Make(SupervisorOptions options) {
  // etcd runs in its own directory, so relative paths must become absolute.
  for (std::string* path :
       {&options.data_dir, &options.pki.ca_file, &options.pki.server_certificate_file,
        &options.pki.server_key_file, &options.pki.client_certificate_file, &options.pki.client_key_file,
        &options.pki.peer_certificate_file, &options.pki.peer_key_file}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path);
  }
  KEELSON_RETURN_IF_ERROR(MakeDirs(options.data_dir, 0700));
  if (options.pki.ca_file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(options.pki, EnsurePki(options.data_dir + "/pki"));
  }
  if (options.pki.peer_certificate_file.empty()) {
    options.pki.peer_certificate_file = options.pki.server_certificate_file;
    options.pki.peer_key_file = options.pki.server_key_file;
  }
  if (!options.address.empty()) {
    if (options.client_port == 0) options.client_port = kClientPort;
    if (options.peer_port == 0) options.peer_port = kPeerPort;
  }
  if (options.client_port == 0) {
    KEELSON_ASSIGN_OR_RETURN(options.client_port, FreePort());
  }
  while (options.peer_port == 0 || options.peer_port == options.client_port) {
    KEELSON_ASSIGN_OR_RETURN(options.peer_port, FreePort());
  }
  std::unique_ptr<Supervisor> made(new Supervisor(std::move(options)));
  ClientOptions& client = made->client_options_;
  client.endpoints = {made->Url()};
  if (made->SocketFile().size() < sizeof(sockaddr_un::sun_path)) {
    client.endpoints = {"unix://" + made->SocketFile()};
  }
  KEELSON_ASSIGN_OR_RETURN(client.ca_pem, ReadFile(made->options_.pki.ca_file));
  KEELSON_ASSIGN_OR_RETURN(client.certificate_pem, ReadFile(made->options_.pki.client_certificate_file));
  KEELSON_ASSIGN_OR_RETURN(client.key_pem, ReadFile(made->options_.pki.client_key_file));
  return made;
}

std::string Supervisor::Url() const { return UrlAt(options_.address, options_.client_port); }
std::string Supervisor::PeerUrl() const { return UrlAt(options_.address, options_.peer_port); }

std::string Supervisor::SocketFile() const { return options_.data_dir + "/" + kSocket; }

ClientOptions Supervisor::tls_client_options() const {
  ClientOptions options = client_options_;
  options.endpoints = {Url()};
  return options;
}

ClientOptions Supervisor::Running(const std::string& data_dir) {
  ClientOptions options;
  options.endpoints = {"unix://" + std::filesystem::absolute(data_dir).string() + "/" + kSocket};
  return options;
}

std::vector<std::string> Supervisor::Arguments() const {
  std::string client = Url();
  std::string peer = PeerUrl();
  const bool alone = options_.initial_cluster.empty(), begins = alone || options_.bootstraps;
  const Pki& pki = options_.pki;
  std::vector<std::string> arguments = {
      options_.binary,
      "--name=" + options_.name,
      "--data-dir=" + options_.data_dir + "/data",
      "--listen-client-urls=" + client + ",unix://" + kSocket,
      "--advertise-client-urls=" + client,
      "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer,
      "--initial-cluster=" + (alone ? options_.name + "=" + peer : options_.initial_cluster),
      std::string("--initial-cluster-state=") + (begins ? "new" : "existing"),
      "--client-cert-auth=true",
      "--trusted-ca-file=" + pki.ca_file,
      "--cert-file=" + pki.server_certificate_file,
      "--key-file=" + pki.server_key_file,
      "--peer-client-cert-auth=true",
      "--peer-trusted-ca-file=" + pki.ca_file,
      "--peer-cert-file=" + pki.peer_certificate_file,
      "--peer-key-file=" + pki.peer_key_file,
      "--logger=zap",
      "--log-outputs=stderr",
      "--quota-backend-bytes=" + std::to_string(kQuotaBytes),
      "--snapshot-count=10000"};
  arguments.insert(arguments.end(), options_.extra_arguments.begin(), options_.extra_arguments.end());
  return arguments;
}

// Without what finds the other members: they may answer while this one does not.
ClientOptions Supervisor::OwnAlone() const {
  ClientOptions options = client_options_;
  if (options.endpoints[0].starts_with("unix://")) options.ca_pem.clear();
  return options;
}

bool Supervisor::AwaitHealthy(int pidfd, std::stop_token stop) {
  Client client(OwnAlone());
  while (!stop.stop_requested() && !AwaitReadable(pidfd, -1, milliseconds(0))) {
    Limits limits{std::chrono::steady_clock::now() + milliseconds(500), stop};
    // A linearizable read needs a leader, so it proves more than an open port.
    if (client.Revision(limits)) return true;
  }
  return false;
}

bool Supervisor::Answers() const {
  return Client(OwnAlone()).Status({std::chrono::steady_clock::now() + seconds(1), {}}).has_value();
}

Result<> Supervisor::Run(std::stop_token stop, const std::function<void()>& ready) {
  StopFd stop_fd(stop);
  std::string log_file = options_.data_dir + "/etcd.log";
  bool was_ready = false;
  int failures = 0;
  milliseconds backoff = kFirstBackoff;
  while (!stop.stop_requested()) {
    SteadyTime started = std::chrono::steady_clock::now();
    unlink(SocketFile().c_str());  // a killed etcd leaves its socket, and the next one does not replace it
    KEELSON_ASSIGN_OR_RETURN(Child child, Child::Start(Arguments(), options_.data_dir, log_file));
    pid_ = child.pid();
    if (AwaitHealthy(child.pidfd(), stop) && !was_ready) {
      was_ready = true;
      ready();
    }
    if (!AwaitReadable(child.pidfd(), stop_fd.get(), milliseconds(-1))) {
      const bool answers = Answers();
      child.Signal(SIGTERM);
      AwaitReadable(child.pidfd(), -1, answers ? kStopPatience : kSilentPatience);
      pid_ = 0;
      return {};  // ~Child kills what is left
    }
    pid_ = 0;
    std::string how = child.Wait();
    if (stop.stop_requested()) break;
    log::Warn("etcd has ended; starting it again", {{"how", how}});
    if (!was_ready && ++failures >= kMaxFirstFailures) {
      return Error(Code::kUnavailable, fmt::format("etcd does not start: {}: {}", how, LastLines(log_file)));
    }
    if (std::chrono::steady_clock::now() - started > kStable) backoff = kFirstBackoff;
    AwaitReadable(stop_fd.get(), -1, backoff);
    backoff = std::min(backoff * 2, kLastBackoff);
  }
  return {};
}

}  // namespace keelson::etcd
