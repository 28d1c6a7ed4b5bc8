#include "lib/netlink/socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

struct Outcome {
  const std::function<void(nlmsghdr*)>* on_reply;
  bool done = false;
  bool interrupted = false;
  int errnum = 0;
  std::string reason;
};

int OnReply(nl_msg* message, void* arg) {
  auto* outcome = static_cast<Outcome*>(arg);
  nlmsghdr* header = nlmsg_hdr(message);
  if (header->nlmsg_flags & NLM_F_DUMP_INTR) outcome->interrupted = true;
  if (*outcome->on_reply) (*outcome->on_reply)(header);
  return NL_OK;
}

int OnEnd(nl_msg*, void* arg) {
  static_cast<Outcome*>(arg)->done = true;
  return NL_STOP;
}

int OnError(sockaddr_nl*, nlmsgerr* error, void* arg) {
  auto* outcome = static_cast<Outcome*>(arg);
  outcome->done = true;
  outcome->errnum = -error->error;
  // With NETLINK_CAP_ACK the kernel cuts the echoed request to its header; extended attributes follow at
  // once.
  auto* header = reinterpret_cast<nlmsghdr*>(reinterpret_cast<char*>(error) - NLMSG_HDRLEN);
  int rest = static_cast<int>(header->nlmsg_len - NLMSG_HDRLEN - sizeof(nlmsgerr));
  if ((header->nlmsg_flags & NLM_F_ACK_TLVS) && (header->nlmsg_flags & NLM_F_CAPPED) && rest > 0) {
    auto* attributes = reinterpret_cast<nlattr*>(error + 1);
    if (nlattr* text = nla_find(attributes, rest, NLMSGERR_ATTR_MSG)) outcome->reason = nla_get_string(text);
  }
  return NL_STOP;
}

}  // namespace

Result<Socket> Socket::OpenProtocol(int protocol) {
  nl_sock* raw = nl_socket_alloc();
  if (!raw) return Error(Code::kInternal, "allocate netlink socket");
  Socket socket(raw);
  errno = 0;
  if (int failed = nl_connect(raw, protocol); failed != 0) {
    if (errno != 0) return ErrnoError("open netlink socket");
    return Error(Code::kInternal, std::string("open netlink socket: ") + nl_geterror(failed));
  }
  int on = 1;
  setsockopt(nl_socket_get_fd(raw), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  setsockopt(nl_socket_get_fd(raw), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  return socket;
}

Result<Socket> Socket::OpenProtocolIn(const linux::NetNs& netns, int protocol) {
  std::optional<Socket> socket;
  KEELSON_RETURN_IF_ERROR(netns.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(socket, OpenProtocol(protocol));
    return {};
  }));
  return std::move(*socket);
}

Result<Socket> Socket::Open() { return OpenProtocol(NETLINK_ROUTE); }
Result<Socket> Socket::OpenIn(const linux::NetNs& netns) { return OpenProtocolIn(netns, NETLINK_ROUTE); }
Result<Socket> Socket::OpenNetfilter() { return OpenProtocol(NETLINK_NETFILTER); }
Result<Socket> Socket::OpenNetfilterIn(const linux::NetNs& netns) {
  return OpenProtocolIn(netns, NETLINK_NETFILTER);
}
Result<Socket> Socket::OpenXfrm() { return OpenProtocol(NETLINK_XFRM); }
Result<Socket> Socket::OpenGeneric() { return OpenProtocol(NETLINK_GENERIC); }

uint32_t Socket::port() const { return nl_socket_get_local_port(socket_); }

Socket::Socket(Socket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(socket_, other.socket_);
  return *this;
}
Socket::~Socket() {
  if (socket_) nl_socket_free(socket_);
}

Request::Request(int type, int flags, std::string what)
    : message_(nlmsg_alloc_simple(type, flags)), what_(std::move(what)) {}

Result<bool> Request::RunIfThere(Socket& socket) {
  Result<> deleted = Run(socket);
  if (!deleted && deleted.error().Is(Code::kNotFound)) return false;
  if (!deleted) return deleted.error();
  return true;
}

Result<> Request::Run(Socket& socket, const std::function<void(nlmsghdr*)>& on_reply) {
  bool interrupted = false;
  return Once(socket, on_reply, interrupted);
}

Result<> Request::Once(Socket& socket, const std::function<void(nlmsghdr*)>& on_reply, bool& interrupted) {
  Outcome outcome{.on_reply = &on_reply};
  nl_cb* callbacks = nl_cb_alloc(NL_CB_DEFAULT);
  nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, OnReply, &outcome);
  nl_cb_set(callbacks, NL_CB_ACK, NL_CB_CUSTOM, OnEnd, &outcome);
  nl_cb_set(callbacks, NL_CB_FINISH, NL_CB_CUSTOM, OnEnd, &outcome);
  nl_cb_err(callbacks, NL_CB_CUSTOM, OnError, &outcome);
  int status = nl_send_auto(socket.get(), message_);
  while (status >= 0 && !outcome.done) status = nl_recvmsgs(socket.get(), callbacks);
  nl_cb_put(callbacks);
  interrupted = outcome.interrupted;
  if (outcome.errnum != 0) {
    Error error = Error::FromErrno(outcome.errnum, what_);
    if (outcome.reason.empty()) return error;
    return Error(error.code(), error.message() + " (" + outcome.reason + ")", outcome.errnum);
  }
  if (status < 0) return Error(Code::kInternal, what_ + ": " + nl_geterror(status));
  return {};
}

}  // namespace keelson::netlink
