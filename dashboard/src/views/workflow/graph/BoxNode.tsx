import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { counted, duration } from "../../../ui/format";
import { Icon } from "../../../ui/Icon";
import { JobLink } from "../../../ui/links";
import { StateBar } from "../../../ui/StateBar";
import { StateMark } from "../../../ui/StateMark";
import { lookOf } from "../../../ui/states";
import type { GraphNode } from "../queries";
import styles from "./Graph.module.css";
import { GroupCount } from "./GroupCount";
import { groupLabel } from "./groupLabel";
import { mainState } from "./mainState";

export type BoxNodeType = Node<
  { node: GraphNode; workflow: number; onToggle: (group: string) => void },
  "box"
>;

/** A job, a closed group, or an open group around its boxes. */
export const BoxNode = memo(function BoxNode({ data }: NodeProps<BoxNodeType>) {
  const { node, workflow, onToggle } = data;
  const look = lookOf(mainState(node.states));
  const kind = node.open ? styles.open : node.kind === "job" ? styles.job : styles.group;
  return (
    <div className={`${styles.box} ${kind}`} data-tone={look.tone} data-critical={node.critical}>
      <Handle type="target" position={Position.Left} className={styles.handle} />
      {node.kind === "job" && node.job !== null ? (
        <>
          <StateMark mark={look.mark} />
          <span className={styles.label} title={`${node.label}: ${look.label}`}>
            <JobLink id={node.job}>{node.label}</JobLink>
          </span>
          <span className="visually-hidden">{look.label}</span>
          <Took node={node} />
        </>
      ) : (
        <>
          <div className={styles.head}>
            <button
              type="button"
              className={`${styles.toggle} nodrag nopan`}
              aria-expanded={node.open}
              onClick={() => onToggle(node.id)}
              title={groupLabel(node)}
            >
              <Icon name={node.open ? "down" : "right"} size={14} />
              <span className={styles.label}>{groupLabel(node)}</span>
            </button>
            <span className={styles.count}>
              <GroupCount workflow={workflow} node={node}>
                {counted(node.jobs, "job")}
              </GroupCount>
            </span>
            {!node.open && <Took node={node} />}
          </div>
          {!node.open && <StateBar counts={node.states} />}
        </>
      )}
      <Handle type="source" position={Position.Right} className={styles.handle} />
    </div>
  );
});

/** How long it has run, or took. */
function Took({ node }: { node: GraphNode }) {
  if (node.ms === null || node.ms === undefined) return null;
  return <span className={styles.took}>{duration(node.ms / 1000)}</span>;
}
