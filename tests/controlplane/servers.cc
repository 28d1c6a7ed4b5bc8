#include "tests/controlplane/servers.h"

#include "lib/base/free_port.h"
#include "lib/base/testing/eventually.h"
#include "lib/crypto/signing_key.h"

namespace keelson::controlplane {
namespace {

constexpr std::chrono::seconds kPatience{30};

void Expect(bool done, const std::string& what) {
  if (done) return;
  fprintf(stderr, "%s\n", what.c_str());
  abort();
}

}  // namespace

std::string Answer::Field(const std::string& name) const {
  const std::string mark = "\"" + name + "\":\"";
  const size_t at = body.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = at + mark.size();
  return body.substr(begin, body.find('"', begin) - begin);
}

Servers::Servers(size_t count, const std::vector<std::string>& flags,
                 std::vector<std::vector<std::string>> own_flags, const std::vector<int>& clocks)
    : etcd_client_(std::make_unique<etcd::Client>(etcd_.supervisor().client_options())),
      admin_(pki_.Client("admin", {"system:masters"})),
      flags_(flags),
      own_flags_(std::move(own_flags)) {
  const Result<crypto::SigningKey> key = crypto::SigningKey::GenerateRsa();
  Expect(key && WriteFile(pki_.dir() + "/sa.key", *key->PrivatePem(), 0600), "cannot write the key");
  MakeClocks(clocks);
  processes_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    ports_.push_back(FreePort().value_or(0));
    clients_.push_back(NewClient(i));
  }
  for (size_t i = 0; i < count; ++i) Start(i);
  for (size_t i = 0; i < count; ++i) Ready(i);
}

// A library in front of the C library moves a process's clock.
void Servers::MakeClocks(const std::vector<int>& clocks) {
  if (!kMovesClocks || clocks.empty()) return;
  const std::string library = pki_.dir() + "/clock.so";
  const apiserver::Output built =
      apiserver::RunProgram({"cc", "-O2", "-shared", "-fPIC", "-o", library, KEELSON_CLOCK_SOURCE});
  Expect(built.code == 0, built.err);
  for (const int seconds : clocks) {
    const std::string file = pki_.dir() + "/clock" + std::to_string(environments_.size());
    const int64_t ahead = int64_t{seconds} * 1000000000;
    Expect(static_cast<bool>(WriteFile(file, {reinterpret_cast<const char*>(&ahead), sizeof ahead})),
           "cannot write the clock");
    environments_.push_back({"LD_PRELOAD=" + library, "CLOCK_FILE=" + file});
  }
}

void Servers::Start(size_t index) {
  std::vector<std::string> flags = {
      "--etcd-servers=" + etcd_.supervisor().client_options().endpoints.at(0),
      "--bind-address=127.0.0.1",
      "--secure-port=" + std::to_string(ports_[index]),
      "--advertise-address=192.0.2." + std::to_string(10 + index),
      "--tls-cert-file=" + pki_.server_cert_file(),
      "--tls-private-key-file=" + pki_.server_key_file(),
      "--client-ca-file=" + pki_.ca_file(),
      "--service-account-signing-key-file=" + pki_.dir() + "/sa.key",
  };
  if (index > 0) flags.emplace_back("--roles=apiserver");
  flags.insert(flags.end(), flags_.begin(), flags_.end());
  const bool own = index < own_flags_.size();
  if (own) {
    flags.insert(flags.end(), {"--peer-ca-file=" + pki_.ca_file(), "--peer-advertise-ip=127.0.0.1",
                               "--peer-advertise-port=" + std::to_string(ports_[index])});
    flags.insert(flags.end(), own_flags_[index].begin(), own_flags_[index].end());
  }
  processes_[index] = std::make_unique<Process>(
      pki_.dir() + "/server" + std::to_string(index) + ".log", std::move(flags),
      own ? "host-" + std::to_string(index) : "",
      index < environments_.size() ? environments_[index] : std::vector<std::string>());
}

void Servers::Ready(size_t index) {
  const auto answers = [&] { return Do(index, "GET", "/readyz").status == 200; };
  const bool over = Eventually([&] { return !processes_[index]->running() || answers(); });
  Expect(over && processes_[index]->running(), Log(index));
}

std::unique_ptr<http::Client> Servers::NewClient(size_t index, bool anonymous) const {
  http::ClientOptions options;
  options.base_url = "https://127.0.0.1:" + std::to_string(ports_[index]);
  options.tls.ca_pem = pki_.ca_pem();
  if (!anonymous) {
    options.tls.certificate_pem = admin_.certificate_pem;
    options.tls.key_pem = admin_.key_pem;
  }
  auto client = http::Client::Create(std::move(options));
  Expect(static_cast<bool>(client), "cannot make a client");
  return std::move(*client);
}

Answer Servers::Do(http::Client& client, const std::string& method, const std::string& target,
                   const std::string& body) {
  http::ClientRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  if (!body.empty()) {
    request.headers.Add("Content-Type",
                        method == "PATCH" ? "application/merge-patch+json" : "application/json");
  }
  Answer out;
  Result<http::ClientResponse> response = client.Do(request, kPatience);
  if (!response) {
    out.error = response.error().message();
    out.unsent = out.error.starts_with("connect to ");
    return out;
  }
  out.status = response->status;
  out.retry_after = response->headers.Get("Retry-After");
  out.body = std::move(response->body);
  return out;
}

Answer Servers::Do(size_t index, const std::string& method, const std::string& target,
                   const std::string& body) {
  return Do(*clients_[index], method, target, body);
}

RetryingClient::RetryingClient(const Servers& servers, size_t first) : servers_(servers), at_(first) {
  for (size_t i = 0; i < servers.size(); ++i) clients_.push_back(servers.NewClient(i));
}

Answer RetryingClient::Do(const std::string& method, const std::string& target, const std::string& body) {
  const SteadyTime deadline = SteadyTime::clock::now() + seconds(60);
  for (;;) {
    Answer answer = Servers::Do(*clients_[at_], method, target, body);
    const bool again = answer.unsent || (answer.status == 0 && method == "GET") ||
                       ((answer.status == 429 || answer.status == 503) && !answer.retry_after.empty());
    if (!again || SteadyTime::clock::now() > deadline) return answer;
    at_ = (at_ + 1) % servers_.size();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace keelson::controlplane
