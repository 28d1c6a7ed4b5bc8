#include "tests/apiserver/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/free_port.h"
#include "lib/crypto/signing_key.h"

namespace keelson::apiserver {
namespace {

using Time = std::chrono::steady_clock;

std::vector<char*> Pointers(const std::vector<std::string>& arguments) {
  std::vector<char*> out;
  for (const std::string& argument : arguments) out.push_back(const_cast<char*>(argument.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Pipe {
  UniqueFd read, write;
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) abort();
    read.Reset(fds[0]);
    write.Reset(fds[1]);
  }
};

void Check(const Result<>& result) {
  if (result) return;
  fprintf(stderr, "%s\n", result.error().message().c_str());
  abort();
}

}  // namespace

Output RunProgram(const std::vector<std::string>& arguments, const std::string& input,
                  std::chrono::seconds timeout) {
  Pipe in, out, err;
  std::vector<char*> argv = Pointers(arguments);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in.read.get(), 0);
    dup2(out.write.get(), 1);
    dup2(err.write.get(), 2);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  in.read.Reset();
  out.write.Reset();
  err.write.Reset();
  (void)WriteAll(in.write.get(), input, "stdin");
  in.write.Reset();
  Output result;
  Time::time_point deadline = Time::now() + timeout;
  pollfd fds[2] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Time::now()).count();
    if (left <= 0 || poll(fds, 2, static_cast<int>(left)) == 0) {
      kill(pid, SIGKILL);
      break;
    }
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[16384];
      ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      } else {
        fds[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::string TestCluster::Missing() {
  if (RunProgram({"etcd", "--version"}).code != 0) return "etcd is not installed";
  if (RunProgram({"kubectl", "version", "--client"}).code != 0) return "kubectl is not installed";
  return "";
}

TestCluster::TestCluster(const std::vector<std::string>& flags) : port_(FreePort().value_or(0)) {
  const std::string& dir = pki_.dir();
  Result<crypto::SigningKey> key = crypto::SigningKey::GenerateRsa();
  Check(WriteFile(dir + "/sa.key", *key->PrivatePem(), 0600));
  crypto::TestCertificate kubelet = pki_.Client("kube-apiserver-kubelet-client", {"system:masters"});
  Check(WriteFile(dir + "/kubelet.crt", kubelet.certificate_pem));
  Check(WriteFile(dir + "/kubelet.key", kubelet.key_pem, 0600));
  // The advertise address only needs to be valid in Endpoints; no client connects to it.
  arguments_ = {KEELSON_CONTROLPLANE,
                "--allow-privileged=true",
                "--data-dir",
                dir + "/data",
                "--bind-address",
                "127.0.0.1",
                "--secure-port",
                std::to_string(port_),
                "--advertise-address",
                "192.0.2.10",
                "--tls-cert-file",
                pki_.server_cert_file(),
                "--tls-private-key-file",
                pki_.server_key_file(),
                "--client-ca-file",
                pki_.ca_file(),
                "--service-account-signing-key-file",
                dir + "/sa.key",
                "--kubelet-client-certificate",
                dir + "/kubelet.crt",
                "--kubelet-client-key",
                dir + "/kubelet.key",
                "--kubelet-certificate-authority",
                pki_.ca_file()};
  arguments_.insert(arguments_.end(), flags.begin(), flags.end());
  AddUser("admin", {"system:masters"});
  Start();
}

void TestCluster::Start() {
  std::vector<char*> argv = Pointers(arguments_);
  std::string log = pki_.dir() + "/controlplane.log";
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Time::time_point deadline = Time::now() + std::chrono::seconds(60);
  for (;;) {
    Output ready =
        RunProgram({"curl", "-fsS", "-m", "2", "--cacert", pki_.ca_file(), "--retry", "50", "--retry-delay",
                    "1", "--retry-connrefused", "--retry-max-time", "50", url() + "/readyz"});
    if (ready.code == 0) return;
    if (Time::now() < deadline && waitpid(pid_, nullptr, WNOHANG) == 0) continue;
    fprintf(stderr, "%s\n%s\n", ready.err.c_str(), ReadFile(log).value_or("").c_str());
    abort();
  }
}

TestCluster::~TestCluster() { Stop(); }

int TestCluster::Stop() {
  if (pid_ < 0) return -1;
  int status = 0;
  kill(pid_, SIGTERM);
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t TestCluster::etcd_pid() const {
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  for (const std::string& task : ListDir(tasks).value_or(std::vector<std::string>())) {
    std::istringstream children(ReadFile(tasks + "/" + task + "/children").value_or(""));
    for (pid_t child = 0; children >> child;) {
      if (ReadFile("/proc/" + std::to_string(child) + "/comm").value_or("") == "etcd\n") return child;
    }
  }
  return -1;
}

std::string TestCluster::Log() const { return ReadFile(pki_.dir() + "/controlplane.log").value_or(""); }

size_t TestCluster::ResidentMb() const {
  std::string text = ReadFile("/proc/" + std::to_string(pid_) + "/statm").value_or("0 0");
  return std::stoul(text.substr(text.find(' '))) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) >> 20;
}

void TestCluster::AddUser(const std::string& user, const std::vector<std::string>& groups) {
  crypto::TestCertificate certificate = pki_.Client(user, groups);
  std::string stem = pki_.dir() + "/" + user;
  Check(WriteFile(stem + ".crt", certificate.certificate_pem));
  Check(WriteFile(stem + ".key", certificate.key_pem, 0600));
  Check(WriteFile(Conf(user),
                  "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
                  "clusters: [{name: c, cluster: {server: '" +
                      url() + "', certificate-authority: " + pki_.ca_file() +
                      "}}]\nusers: [{name: u, user: {client-certificate: " + stem + ".crt, client-key: " +
                      stem + ".key}}]\ncontexts: [{name: test, context: {cluster: c, user: u}}]\n"));
}

Output TestCluster::Kubectl(std::vector<std::string> arguments, const std::string& input,
                            const std::string& user) {
  std::vector<std::string> all = {"kubectl", "--kubeconfig", Conf(user), "--cache-dir",
                                  pki_.dir() + "/cache"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunProgram(all, input);
}

std::unique_ptr<http::Client> TestCluster::NewClient(const std::string& user) {
  http::ClientOptions options;
  options.base_url = url();
  options.tls.ca_pem = pki_.ca_pem();
  if (!user.empty()) {
    options.tls.certificate_pem = ReadFile(pki_.dir() + "/" + user + ".crt").value_or("");
    options.tls.key_pem = ReadFile(pki_.dir() + "/" + user + ".key").value_or("");
  }
  auto client = http::Client::Create(std::move(options));
  if (!client) abort();
  return std::move(*client);
}

http::ClientResponse TestCluster::Do(const http::ClientRequest& request, const std::string& user) {
  auto response = NewClient(user)->Do(request, std::chrono::seconds(30));
  if (!response) {
    fprintf(stderr, "%s %s: %s\n", request.method.c_str(), request.target.c_str(),
            response.error().message().c_str());
    return {};
  }
  return std::move(*response);
}

}  // namespace keelson::apiserver
