import { type DragEvent, type DragEventHandler, useRef, useState } from 'react';

/** Handlers for the element on which files can be dropped. */
interface DropHandlers {
  onDragEnter: DragEventHandler;
  onDragLeave: DragEventHandler;
  onDragOver: DragEventHandler;
  onDrop: DragEventHandler;
}

interface FileDrop {
  /** Files are held over the element, and would be taken. */
  over: boolean;
  handlers: DropHandlers;
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');

/** Lets files be dropped on an element: `take` gets them unless `accepts` returns false. */
export function useFileDrop(
  take: (data: DataTransfer) => void,
  accepts: () => boolean = () => true,
): FileDrop {
  const [over, setOver] = useState(false);
  // Enter and leave are reported for each element inside, too.
  const depth = useRef(0);
  const setDepth = (next: number): void => {
    depth.current = Math.max(0, next);
    setOver(depth.current > 0 && accepts());
  };
  const handlers: DropHandlers = {
    onDragEnter: (event) => {
      if (hasFiles(event)) setDepth(depth.current + 1);
    },
    onDragLeave: (event) => {
      if (hasFiles(event)) setDepth(depth.current - 1);
    },
    onDragOver: (event) => {
      if (hasFiles(event)) event.preventDefault();
    },
    onDrop: (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDepth(0);
      if (accepts()) take(event.dataTransfer);
    },
  };
  return { over, handlers };
}
