// Internal to lib/nft: iterates over netlink attributes (libmnl's own macros are C).
#pragma once

#include <libmnl/libmnl.h>

namespace keelson::nft {

// Calls each(const nlattr*) for the attributes between `first` and `end`.
template <typename Each>
void WalkAttributes(const void* first, const void* end, Each each) {
  auto* attribute = static_cast<const nlattr*>(first);
  auto left = [&] {
    return static_cast<int>(static_cast<const char*>(end) - reinterpret_cast<const char*>(attribute));
  };
  for (; mnl_attr_ok(attribute, left()); attribute = mnl_attr_next(attribute)) each(attribute);
}
// Calls each(const nlattr*) for the attributes of a message, after its fixed header.
template <typename Each>
void ForEachAttribute(const nlmsghdr* message, unsigned header_size, Each each) {
  WalkAttributes(mnl_nlmsg_get_payload_offset(message, header_size), mnl_nlmsg_get_payload_tail(message),
                 each);
}
// Calls each(const nlattr*) for the attributes inside `outer`.
template <typename Each>
void ForEachNested(const nlattr* outer, Each each) {
  auto* first = static_cast<const char*>(mnl_attr_get_payload(outer));
  WalkAttributes(first, first + mnl_attr_get_payload_len(outer), each);
}

}  // namespace keelson::nft
