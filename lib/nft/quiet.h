// Mutes our own monitor during large transactions.
//
// While any process on the machine listens to nf_tables, in any network namespace, the kernel builds a
// message of 9 KiB for each element and keeps all of them until it commits: 2 GiB for 200 000 elements, and
// most of the time. So the monitor stops listening during a large write. The ruleset's generation shows
// whether somebody else changed tables meanwhile.
#pragma once

#include <functional>
#include <memory>

#include "lib/nft/kernel.h"
#include "lib/nft/monitor.h"

namespace keelson::nft {

struct Audience {
  std::function<std::shared_ptr<Monitor>()> monitor;  // the monitor to mute; null: there is none
  std::function<void()> missed;                       // changes by others may have gone unnoticed
  std::function<void(const Error&)> deaf;  // the monitor could not rejoin and will see nothing more
};

// Wraps `kernel`: applies transactions with many elements while the monitor is muted. Apply()'s thread
// calls the functions of `audience`.
std::unique_ptr<Kernel> Quietly(std::unique_ptr<Kernel> kernel, Audience audience);

}  // namespace keelson::nft
