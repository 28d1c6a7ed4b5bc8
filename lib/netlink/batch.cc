#include "lib/netlink/batch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>

#include "lib/netlink/requests_internal.h"

namespace keelson::netlink {
namespace {

// The number of error replies that fit into the smallest usual receive buffer (default net.core.rmem_max).
constexpr size_t kMessagesPerSend = 128;
// Far from the numbers that libnl uses for the same socket.
constexpr uint32_t kFirstSequence = 0x80000000u;

}  // namespace

struct Batch::Impl {
  struct Entry {
    size_t offset;
    std::string what;
    bool may_be_gone;
  };

  explicit Impl(Socket& s) : socket(s) { nl_socket_set_buffer_size(s.get(), 1 << 20, 1 << 18); }

  void Add(std::unique_ptr<Request> request, bool may_be_gone = false) {
    nlmsghdr* header = nlmsg_hdr(request->message());
    header->nlmsg_flags |= NLM_F_REQUEST;
    header->nlmsg_seq = kFirstSequence + static_cast<uint32_t>(entries.size());
    entries.push_back({bytes.size(), request->what(), may_be_gone});
    size_t length = header->nlmsg_len;
    bytes.append(reinterpret_cast<const char*>(header), length);
    bytes.append(NLMSG_ALIGN(length) - length, '\0');
  }

  nlmsghdr* HeaderOf(size_t index) {
    return reinterpret_cast<nlmsghdr*>(bytes.data() + entries[index].offset);
  }

  Result<> RunPart(size_t begin, size_t end, std::vector<Error>& refused) {
    HeaderOf(end - 1)->nlmsg_flags |= NLM_F_ACK;
    size_t from = entries[begin].offset;
    size_t to = end < entries.size() ? entries[end].offset : bytes.size();
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    int fd = nl_socket_get_fd(socket.get());
    if (::sendto(fd, bytes.data() + from, to - from, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) <
        0) {
      return ErrnoError("send netlink batch");
    }
    for (;;) {
      alignas(nlmsghdr) char buffer[32768];
      ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoError("receive answers to netlink batch");
      auto left = static_cast<unsigned>(got);
      for (auto* header = reinterpret_cast<nlmsghdr*>(buffer); NLMSG_OK(header, left);
           header = NLMSG_NEXT(header, left)) {
        size_t index = header->nlmsg_seq - kFirstSequence;
        if (header->nlmsg_type != NLMSG_ERROR || index < begin || index >= end) continue;
        int errnum = -static_cast<nlmsgerr*>(NLMSG_DATA(header))->error;
        if (errnum != 0) {
          Error error = Error::FromErrno(errnum, entries[index].what);
          if (!entries[index].may_be_gone || !error.Is(Code::kNotFound)) refused.push_back(std::move(error));
        }
        if (index + 1 == end) return {};
      }
    }
  }

  Socket& socket;
  std::string bytes;
  std::vector<Entry> entries;
};

Batch::Batch(Socket& socket) : impl_(std::make_unique<Impl>(socket)) {}
Batch::~Batch() = default;

void Batch::ReplaceRoute(const Route& route) {
  impl_->Add(RouteRequest(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route, "replace"));
}
void Batch::DeleteRoute(const Route& route) {
  impl_->Add(RouteRequest(RTM_DELROUTE, 0, route, "delete"), true);
}
void Batch::ReplaceNeighbor(const Neighbor& neighbor) { impl_->Add(NeighborRequest(neighbor)); }
void Batch::DeleteNeighbor(int link_index, const IpAddress& address) {
  impl_->Add(DeleteNeighborRequest(link_index, address), true);
}
void Batch::ReplaceForwarding(const Forwarding& entry) { impl_->Add(ForwardingRequest(entry)); }
void Batch::DeleteForwarding(const Forwarding& entry) { impl_->Add(DeleteForwardingRequest(entry), true); }
size_t Batch::size() const { return impl_->entries.size(); }

Result<std::vector<Error>> Batch::Run() {
  std::vector<Error> refused;
  Result<> done;
  for (size_t begin = 0; done && begin < impl_->entries.size(); begin += kMessagesPerSend) {
    done = impl_->RunPart(begin, std::min(begin + kMessagesPerSend, impl_->entries.size()), refused);
  }
  impl_->entries.clear();
  impl_->bytes.clear();
  if (!done) return done.error();
  return refused;
}

}  // namespace keelson::netlink
