#include "lib/nft/socket_internal.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "lib/nft/attributes_internal.h"

namespace keelson::nft {
namespace {

// The FORCE options exceed net.core.*mem_max; they need CAP_NET_ADMIN, like all of nf_tables.
void GrowBuffer(int fd, int forced, int plain, int bytes) {
  if (::setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0) {
    ::setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

}  // namespace

Result<NetfilterSocket> NetfilterSocket::Open() {
  mnl_socket* raw = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
  if (!raw) return ErrnoError("open netfilter socket");
  NetfilterSocket socket(raw);
  if (mnl_socket_bind(raw, 0, MNL_SOCKET_AUTOPID) < 0) return ErrnoError("bind netfilter socket");
  int on = 1;
  mnl_socket_setsockopt(raw, NETLINK_CAP_ACK, &on, sizeof on);
  mnl_socket_setsockopt(raw, NETLINK_EXT_ACK, &on, sizeof on);
  GrowBuffer(mnl_socket_get_fd(raw), SO_RCVBUFFORCE, SO_RCVBUF, 1 << 20);
  return socket;
}

NetfilterSocket::~NetfilterSocket() {
  if (socket_) mnl_socket_close(socket_);
}

uint32_t NetfilterSocket::port() const { return mnl_socket_get_portid(socket_); }

Result<> NetfilterSocket::Send(std::string_view bytes) {
  int fd = mnl_socket_get_fd(socket_);
  int now = 0;
  socklen_t size = sizeof now;
  ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &now, &size);
  // The kernel doubles the size that is set, for its own bookkeeping, and a datagram may take half.
  int needed = static_cast<int>(bytes.size()) + 4096;
  if (now < 2 * needed) GrowBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, needed);
  // EINTR before the kernel has done anything: a batch is all or nothing.
  for (int attempt = 0; mnl_socket_sendto(socket_, bytes.data(), bytes.size()) < 0; ++attempt) {
    if (errno != EINTR || attempt == 10) return ErrnoError("send to netfilter");
  }
  return {};
}

Result<size_t> NetfilterSocket::Receive(int flags) {
  for (;;) {
    ssize_t got = ::recv(mnl_socket_get_fd(socket_), buffer_.data(), buffer_.size(), flags);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EINTR) continue;
    if (errno == EAGAIN && (flags & MSG_DONTWAIT)) return 0;
    return ErrnoError("receive from netfilter");
  }
}

Result<> NetfilterSocket::ReceiveQueued(const Each& each) {
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(size_t got, Receive(MSG_DONTWAIT));
    if (got == 0) return {};
    int left = static_cast<int>(got);
    auto* header = reinterpret_cast<const nlmsghdr*>(buffer_.data());
    for (; mnl_nlmsg_ok(header, left); header = mnl_nlmsg_next(header, &left)) each(header);
  }
}

Result<> NetfilterSocket::Query(int type, uint16_t family, int flags, uint32_t seq,
                                const std::vector<std::pair<uint16_t, std::string>>& attributes,
                                const Each& each) {
  char request[2048] = {};  // attributes are padded
  nlmsghdr* header = mnl_nlmsg_put_header(request);
  header->nlmsg_type = static_cast<uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | type);
  header->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  header->nlmsg_seq = seq;
  auto* nfg = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
  nfg->nfgen_family = static_cast<uint8_t>(family);
  nfg->version = NFNETLINK_V0;
  for (const auto& [attribute, value] : attributes) {
    if (!mnl_attr_put_strz_check(header, sizeof request, attribute, value.c_str())) {
      return Error(Code::kInvalid, "name too long for netfilter: " + value);
    }
  }
  KEELSON_RETURN_IF_ERROR(Send({request, header->nlmsg_len}));
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(size_t got, Receive(0));
    int left = static_cast<int>(got);
    auto* answer = reinterpret_cast<const nlmsghdr*>(buffer_.data());
    for (; mnl_nlmsg_ok(answer, left); answer = mnl_nlmsg_next(answer, &left)) {
      if (answer->nlmsg_seq != seq) continue;  // left over from an abandoned query
      if (answer->nlmsg_type == NLMSG_DONE) return {};
      if (answer->nlmsg_type == NLMSG_ERROR) {
        int error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(answer))->error;
        if (error != 0) return Error::FromErrno(-error, "query netfilter");
        return {};
      }
      each(answer);
    }
  }
}

uint32_t NetfilterSocket::BadAttribute(const nlmsghdr* error) {
  if (!(error->nlmsg_flags & NLM_F_ACK_TLVS) || !(error->nlmsg_flags & NLM_F_CAPPED)) return 0;
  uint32_t offset = 0;
  ForEachAttribute(error, sizeof(nlmsgerr), [&](const nlattr* attribute) {
    if (mnl_attr_get_type(attribute) == NLMSGERR_ATTR_OFFS) offset = mnl_attr_get_u32(attribute);
  });
  return offset;
}

}  // namespace keelson::nft
