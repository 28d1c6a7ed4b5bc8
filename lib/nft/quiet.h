// Large transactions that we do not listen to ourselves.
//
// While anybody on the machine listens to nf_tables, in whatever network namespace, the kernel makes a
// message of each element, in 9 KiB of memory, and keeps them all until it commits: of 200 000 elements
// that is 2 GiB, and most of the time. So our monitor looks away while much is written. Whether somebody
// else was at the tables meanwhile shows in their generation.
#pragma once

#include <functional>
#include <memory>

#include "lib/nft/kernel.h"
#include "lib/nft/monitor.h"

namespace keelson::nft {

struct Audience {
  std::function<std::shared_ptr<Monitor>()> monitor;  // null: nobody listens
  std::function<void()> missed;            // something may have happened that the monitor has not seen
  std::function<void(const Error&)> deaf;  // it will see nothing any more
};

// `kernel`, but with what has many elements written in quiet. The functions are called by Apply's thread.
std::unique_ptr<Kernel> Quietly(std::unique_ptr<Kernel> kernel, Audience audience);

}  // namespace keelson::nft
