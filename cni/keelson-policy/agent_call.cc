#include "cni/keelson-policy/agent_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "lib/base/fd.h"
#include "lib/dataplane/policy_sets.h"

namespace keelson::cni {
namespace {

Result<UniqueFd> Connect() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name in the abstract namespace begins with a zero byte and ends where the address ends.
  constexpr size_t kLength = sizeof dataplane::kPolicySocket - 1;
  std::memcpy(address.sun_path + 1, dataplane::kPolicySocket, kLength);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kLength);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return Error(Code::kUnavailable, "kube-cni does not listen");
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return ErrnoError("SO_PEERCRED");
  if (peer.uid != 0) return Error(Code::kForbidden, "what listens instead of kube-cni is not root");
  return fd;
}

}  // namespace

Result<> AwaitPolicies(const PodAttachment& attachment, std::chrono::milliseconds bound) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, Connect());
  std::string request = std::to_string(attachment.epoch);
  for (const IpAddress& address : attachment.addresses) request += " " + address.ToString();
  request += "\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Error(Code::kUnavailable, "kube-cni hangs up");
  }
  pollfd waiting{fd.get(), POLLIN, 0};
  int ready = ::poll(&waiting, 1, static_cast<int>(bound.count()));
  if (ready == 0) {
    return Error(Code::kTimeout, "kube-cni does not know the pod yet, or cannot write its rules");
  }
  char answer[4];
  ssize_t got = ready > 0 ? ::recv(fd.get(), answer, sizeof answer, 0) : -1;
  if (got == 3 && std::memcmp(answer, "ok\n", 3) == 0) return {};
  return Error(Code::kUnavailable, "kube-cni hangs up");
}

}  // namespace keelson::cni
