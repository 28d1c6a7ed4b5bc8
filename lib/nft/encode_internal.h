// Inside lib/nft only: changes as nf_tables netlink messages.
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
    size_t op;             // which change of the transaction
    size_t first_element;  // of that change's elements, for messages that carry some
  };
  uint32_t first_seq;             // of the BATCH_BEGIN; messages follow one by one
  std::vector<Message> messages;  // without BEGIN and END
};

// Only the last message asks for an acknowledgement; refused ones are reported anyway.
Batch Encode(const Transaction& transaction, uint32_t first_seq);

// The kernel's numbers for concatenated types, and back. An unknown number gives no types.
uint32_t KernelType(const std::vector<Type>& types);
std::vector<Type> TypesOf(uint32_t kernel_type);

}  // namespace keelson::nft
