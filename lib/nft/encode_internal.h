// Internal to lib/nft: encodes changes as nf_tables netlink messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/nft/transaction.h"

namespace keelson::nft {

struct Batch {
  std::string bytes;  // BATCH_BEGIN, messages, BATCH_END
  struct Message {
    size_t offset;         // in bytes
    size_t op;             // index of the change in the transaction
    size_t first_element;  // index into that change's elements, for messages that carry some
  };
  uint32_t first_seq;             // of BATCH_BEGIN; each message adds one
  std::vector<Message> messages;  // without BATCH_BEGIN and BATCH_END
};

// Only the last message requests an acknowledgement; the kernel reports refused ones anyway.
Batch Encode(const Transaction& transaction, uint32_t first_seq);

// The kernel's number for a concatenation of types, and back. An unknown number gives no types.
uint32_t KernelType(const std::vector<Type>& types);
std::vector<Type> TypesOf(uint32_t kernel_type);

}  // namespace keelson::nft
